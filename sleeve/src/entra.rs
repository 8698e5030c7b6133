//! Credentials of Entra ID, through Microsoft's `azure_identity`. Tokens are fetched through the
//! same transport as everything else; the SDK caches and renews them.

use std::sync::Arc;

use azure_core::credentials::Secret;
use azure_core::http::{ClientOptions, Transport as SdkTransport};
use azure_identity::{
    ClientSecretCredential, ClientSecretCredentialOptions, DeveloperToolsCredential,
    ManagedIdentityCredential, ManagedIdentityCredentialOptions, UserAssignedId,
};

use crate::account::{AccountError, Credential};
use crate::transport::{SdkClient, Transport};

impl Credential {
    /// The account that is logged in with the Azure CLI or the Azure Developer CLI.
    ///
    /// # Errors
    /// [`AccountError::Client`] as the SDK says it.
    pub fn developer_tools() -> Result<Self, AccountError> {
        let token = DeveloperToolsCredential::new(None).map_err(refused)?;
        Ok(Credential::Token(token))
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
