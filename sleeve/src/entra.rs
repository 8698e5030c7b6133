//! Credentials of Entra ID, through Microsoft's `azure_identity`. Tokens are fetched through the
//! same transport as everything else; the SDK caches and renews them.

use std::sync::Arc;

use azure_core::credentials::Secret;
use azure_core::http::{ClientOptions, Transport as SdkTransport};
use azure_identity::{
    ClientAssertionCredentialOptions, ClientSecretCredential, ClientSecretCredentialOptions,
    DeveloperToolsCredential, ManagedIdentityCredential, ManagedIdentityCredentialOptions,
    UserAssignedId, WorkloadIdentityCredential, WorkloadIdentityCredentialOptions,
};
use serde::Deserialize;

use crate::account::{AccountError, Credential};
use crate::transport::{SdkClient, Transport};

/// Whose token of Entra ID opens an account, in place of a key or a SAS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identity {
    /// The one that the environment names, else who is logged in with the Azure CLI.
    Entra,
    /// The machine's or the app's own; the one of `AZURE_CLIENT_ID` where there are several.
    ManagedIdentity,
}

impl Identity {
    /// As a configuration writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Identity::Entra => "entra",
            Identity::ManagedIdentity => "managed-identity",
        }
    }
}

impl Credential {
    /// The account that is logged in with the Azure CLI or the Azure Developer CLI.
    ///
    /// # Errors
    /// [`AccountError::Client`] as the SDK says it.
    pub fn developer_tools() -> Result<Self, AccountError> {
        let token = DeveloperToolsCredential::new(None).map_err(refused)?;
        Ok(Credential::Token(token))
    }

    /// The identity that the environment names, as Microsoft's own libraries read it: a service
    /// principal by `AZURE_TENANT_ID`, `AZURE_CLIENT_ID` and `AZURE_CLIENT_SECRET`, the workload of
    /// a Kubernetes pod by `AZURE_FEDERATED_TOKEN_FILE`; where it names none, who is logged in with
    /// the Azure CLI or the Azure Developer CLI.
    ///
    /// # Errors
    /// [`AccountError::Client`] as the SDK says it, and for a secret without tenant or client.
    pub fn of_environment(
        variable: &dyn Fn(&str) -> Option<String>,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, AccountError> {
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        let needed = |name: &str| {
            let missing = || AccountError::Client(format!("{name} is not set"));
            given(name).ok_or_else(missing)
        };
        if let Some(secret) = given("AZURE_CLIENT_SECRET") {
            let (tenant, client) = (needed("AZURE_TENANT_ID")?, needed("AZURE_CLIENT_ID")?);
            return Self::client_secret(&tenant, &client, secret, transport);
        }
        if let Some(path) = given("AZURE_FEDERATED_TOKEN_FILE") {
            let options = WorkloadIdentityCredentialOptions {
                credential_options: ClientAssertionCredentialOptions {
                    client_options: through(transport),
                },
                tenant_id: Some(needed("AZURE_TENANT_ID")?),
                client_id: Some(needed("AZURE_CLIENT_ID")?),
                token_file_path: Some(path.into()),
            };
            let token = WorkloadIdentityCredential::new(Some(options)).map_err(refused)?;
            return Ok(Credential::Token(token));
        }
        Self::developer_tools()
    }

    /// A service principal with a client secret.
    ///
    /// # Errors
    /// [`AccountError::Client`] for an empty or malformed tenant, client id or secret.
    pub fn client_secret(
        tenant_id: &str,
        client_id: &str,
        secret: String,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, AccountError> {
        let options = ClientSecretCredentialOptions {
            client_options: through(transport),
        };
        let secret = Secret::new(secret);
        let client_id = client_id.to_owned();
        let token = ClientSecretCredential::new(tenant_id, client_id, secret, Some(options));
        Ok(Credential::Token(token.map_err(refused)?))
    }

    /// The token of an identity. `variable` reads the environment; what is empty there is not set.
    ///
    /// # Errors
    /// As [`Credential::of_environment`] and [`Credential::managed_identity`].
    pub fn of_identity(
        identity: Identity,
        variable: &dyn Fn(&str) -> Option<String>,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, AccountError> {
        match identity {
            Identity::Entra => Self::of_environment(variable, transport),
            Identity::ManagedIdentity => {
                let client = variable("AZURE_CLIENT_ID").filter(|value| !value.is_empty());
                Self::managed_identity(client.as_deref(), transport)
            }
        }
    }

    /// The identity of the machine or app: the system's own, or the one of `client_id`.
    ///
    /// # Errors
    /// [`AccountError::Client`] when the environment offers none.
    pub fn managed_identity(
        client_id: Option<&str>,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, AccountError> {
        let options = ManagedIdentityCredentialOptions {
            user_assigned_id: client_id.map(|id| UserAssignedId::ClientId(id.to_owned())),
            client_options: through(transport),
        };
        let token = ManagedIdentityCredential::new(Some(options)).map_err(refused)?;
        Ok(Credential::Token(token))
    }
}

fn through(transport: Arc<dyn Transport>) -> ClientOptions {
    ClientOptions {
        transport: Some(SdkTransport::new(Arc::new(SdkClient::new(transport)))),
        ..ClientOptions::default()
    }
}

fn refused(error: azure_core::Error) -> AccountError {
    AccountError::Client(error.to_string())
}
