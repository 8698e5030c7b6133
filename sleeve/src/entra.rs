//! Entra ID credentials, through Microsoft's `azure_identity`. Tokens are fetched through the same
//! transport as all requests; the SDK caches and renews them.

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

/// Identity whose Entra ID token opens an account, instead of a key or a SAS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identity {
    /// The identity named by the environment, or else the user logged in with the Azure CLI.
    Entra,
    /// The managed identity of the machine or app; `AZURE_CLIENT_ID` chooses among several.
    ManagedIdentity,
}

impl Identity {
    /// Returns the name used in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Identity::Entra => "entra",
            Identity::ManagedIdentity => "managed-identity",
        }
    }
}

impl Credential {
    /// Creates a credential for the user logged in with the Azure CLI or the Azure Developer CLI.
    ///
    /// # Errors
    /// [`AccountError::Client`] with the SDK's message.
    pub fn developer_tools() -> Result<Self, AccountError> {
        let token = DeveloperToolsCredential::new(None).map_err(refused)?;
        Ok(Credential::Token(token))
    }

    /// Creates a credential for the identity named by the environment, as Microsoft's own libraries
    /// do: a service principal from `AZURE_TENANT_ID`, `AZURE_CLIENT_ID` and `AZURE_CLIENT_SECRET`,
    /// or the workload identity of a Kubernetes pod from `AZURE_FEDERATED_TOKEN_FILE`. If neither
    /// is set, uses the user logged in with the Azure CLI or the Azure Developer CLI.
    ///
    /// # Errors
    /// [`AccountError::Client`] with the SDK's message, and for a secret without tenant or client.
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

    /// Creates a credential for a service principal with a client secret.
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

    /// Creates a credential for an identity. `variable` reads the environment; empty values count
    /// as unset.
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

    /// Creates a credential for the machine's or app's managed identity: the system-assigned one,
    /// or that of `client_id`.
    ///
    /// # Errors
    /// [`AccountError::Client`] if the environment has none.
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
