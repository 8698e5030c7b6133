//! Delete Message: deletes a message by its pop receipt.
//!
//! Source: "Delete Message". A receipt is valid until another get or update issues a new one, even
//! if the message becomes visible again meanwhile.
//!
//! ```http
//! DELETE /devstoreaccount1/orders/messages/{id}?popreceipt=AgAAAAMAAAA...
//!
//! 204 No Content
//! ```

use smalt_protocol::StorageError;
use uuid::Uuid;

use crate::call::Call;
use crate::keys::Generation;
use crate::operation::Write;
use crate::ops::queue::messages::Message;
use crate::ops::queue::name::QueueName;
use crate::ops::queue::parameters::{message_id, pop_receipt};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Delete Message operation.
pub struct DeleteMessage {
    name: QueueName,
    id: Option<Uuid>,
    receipt: u64,
}

impl Write for DeleteMessage {
    type Checked = (Generation, Message);
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(DeleteMessage {
            name: QueueName::of(call)?,
            id: message_id(call),
            receipt: pop_receipt(call)?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Self::Checked, StorageError> {
        let queue = self.name.find(view)?;
        let found = Message::find(view, queue.generation, self.id, self.receipt, stamp.now)?;
        Ok((queue.generation, found))
    }

    fn apply(
        self,
        (generation, message): Self::Checked,
        tx: &mut Transaction<'_>,
        _: &Stamp,
    ) -> Result<(), StorageError> {
        message.remove(tx, generation)?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(204))
    }
}
