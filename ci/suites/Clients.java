import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.BinaryData;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableServiceException;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobClientBuilder;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.blob.batch.BlobBatchClientBuilder;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobStorageException;
import com.azure.storage.blob.models.DeleteSnapshotsOptionType;
import com.azure.storage.blob.models.PageRange;
import com.azure.storage.blob.models.ParallelTransferOptions;
import com.azure.storage.blob.options.BlobParallelUploadOptions;
import com.azure.storage.blob.sas.BlobSasPermission;
import com.azure.storage.blob.sas.BlobServiceSasSignatureValues;
import com.azure.storage.blob.specialized.BlobLeaseClient;
import com.azure.storage.blob.specialized.BlobLeaseClientBuilder;
import com.azure.storage.blob.specialized.PageBlobClient;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueServiceClientBuilder;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.QueueStorageException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;

/**
 * Microsoft's Java SDKs for blobs, queues and tables, each doing some typical work and
 * reading back what it wrote. The argument is a connection string; Rounds.java says what it prints.
 */
public final class Clients {
    private static String connection;

    /** Checks that a call is refused with this code. */
    private static void fails(String code, Runnable call) {
        String found;
        try {
            call.run();
            found = "nothing";
        } catch (BlobStorageException error) {
            found = String.valueOf(error.getErrorCode());
        } catch (QueueStorageException error) {
            found = String.valueOf(error.getErrorCode());
        } catch (TableServiceException error) {
            found = String.valueOf(error.getValue().getErrorCode());
        }
        Rounds.ensure(found.equals(code), found + " in place of " + code);
    }

    private static byte[] bytes(int length) {
        byte[] drawn = new byte[length];
        new Random().nextBytes(drawn);
        return drawn;
    }

    private static void blobs() throws Exception {
        BlobServiceClient service =
            new BlobServiceClientBuilder().connectionString(connection).buildClient();
        BlobContainerClient box = service.createBlobContainer(Rounds.unique("java"));
        byte[] big = bytes(9_000_000);
        BlobClient blob = box.getBlobClient("dir/a b+ü.bin");
        blob.uploadWithResponse(
            new BlobParallelUploadOptions(BinaryData.fromBytes(big))
                .setParallelTransferOptions(
                    new ParallelTransferOptions()
                        .setBlockSizeLong(1_000_000L)
                        .setMaxSingleUploadSizeLong(1_000_000L))
                .setMetadata(Map.of("TimeToLive", "P1D"))
                .setTags(Map.of("project", "x y")),
            Duration.ofSeconds(60), null);
        Rounds.ensure(Arrays.equals(blob.downloadContent().toBytes(), big), "other bytes");
        Rounds.ensure(blob.getTags().equals(Map.of("project", "x y")), blob.getTags());
        var streamed = box.getBlobClient("streamed").getBlockBlobClient();
        try (var out = streamed.getBlobOutputStream(); var in = blob.openInputStream()) {
            out.write(big);
            in.skipNBytes(1_000);
            Rounds.ensure(Arrays.equals(in.readNBytes(50), Arrays.copyOfRange(big, 1_000, 1_050)),
                "another range");
        }
        fails("BlobAlreadyExists", () -> blob.upload(BinaryData.fromString("x"), false));
        BlobLeaseClient lease = new BlobLeaseClientBuilder().blobClient(blob).buildClient();
        lease.acquireLease(15);
        fails("LeaseIdMissing", blob::delete);
        lease.releaseLease();
        blob.createSnapshot();
        List<String> names = new ArrayList<>();
        for (PagedResponse<BlobItem> page
            : box.listBlobs(new com.azure.storage.blob.models.ListBlobsOptions()
                .setMaxResultsPerPage(1)
                .setDetails(new com.azure.storage.blob.models.BlobListDetails()
                    .setRetrieveSnapshots(true)), null).iterableByPage()) {
            page.getValue().forEach(item -> names.add(item.getName()));
        }
        Rounds.ensure(names.equals(List.of("dir/a b+ü.bin", "dir/a b+ü.bin", "streamed")), names);
        List<String> top = box.listBlobsByHierarchy("").stream().map(BlobItem::getName).sorted().toList();
        Rounds.ensure(top.equals(List.of("dir/", "streamed")), top);
        BlobClient copy = box.getBlobClient("copy");
        copy.beginCopy(blob.getBlobUrl(), Duration.ofMillis(100)).waitForCompletion();
        Rounds.ensure(copy.getProperties().getBlobSize() == big.length, "a short copy");
        var log = box.getBlobClient("log").getAppendBlobClient();
        log.create();
        log.appendBlock(new ByteArrayInputStream("one\n".getBytes()), 4);
        log.appendBlock(new ByteArrayInputStream("two\n".getBytes()), 4);
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        log.downloadStream(text);
        Rounds.ensure(text.toString().equals("one\ntwo\n"), text);
        PageBlobClient disk = box.getBlobClient("disk").getPageBlobClient();
        disk.create(4096);
        disk.uploadPages(
            new PageRange().setStart(512).setEnd(1023), new ByteArrayInputStream(bytes(512)));
        var ranges = disk.listPageRanges(new com.azure.storage.blob.models.BlobRange(0)).stream().toList();
        Rounds.ensure(ranges.size() == 1 && ranges.get(0).getRange().getOffset() == 512, ranges.size());
        var batch = new BlobBatchClientBuilder(service).buildClient();
        long deleted = batch.deleteBlobs(
            List.of(copy.getBlobUrl(), log.getBlobUrl(), disk.getBlobUrl()),
            DeleteSnapshotsOptionType.INCLUDE).stream().count();
        Rounds.ensure(deleted == 3, deleted);
        String signature = blob.generateSas(new BlobServiceSasSignatureValues(
            OffsetDateTime.now().plusHours(1), new BlobSasPermission().setReadPermission(true)));
        BlobClient reader = new BlobClientBuilder()
            .endpoint(blob.getBlobUrl() + "?" + signature).buildClient();
        Rounds.ensure(reader.exists(), "the signature does not read");
        fails("AuthorizationPermissionMismatch", reader::delete);
        box.delete();
    }

    private static void queues() {
        QueueClient queue = new QueueServiceClientBuilder().connectionString(connection).buildClient()
            .createQueueWithResponse(Rounds.unique("java"), Map.of("team", "billing"), null, null).getValue();
        for (String text : List.of("one", "two", "three <&> ü")) {
            queue.sendMessage(text);
        }
        Rounds.ensure(queue.getProperties().getApproximateMessagesCount() == 3, "a wrong count");
        List<QueueMessageItem> got =
            queue.receiveMessages(32, Duration.ofSeconds(30), null, null).stream().toList();
        Rounds.ensure(got.size() == 3, got.size());
        QueueMessageItem first = got.get(0);
        var updated = queue.updateMessage(
            first.getMessageId(), first.getPopReceipt(), "again", Duration.ofSeconds(5));
        fails("PopReceiptMismatch",
            () -> queue.deleteMessage(first.getMessageId(), first.getPopReceipt()));
        queue.deleteMessage(first.getMessageId(), updated.getPopReceipt());
        queue.clearMessages();
        Rounds.ensure(queue.peekMessage() == null, "it is not clear");
        queue.delete();
        fails("QueueNotFound", queue::getProperties);
    }

    private static void tables() {
        TableServiceClient service =
            new TableServiceClientBuilder().connectionString(connection).buildClient();
        TableClient table = service.createTable(Rounds.unique("java"));
        TableEntity entity = new TableEntity("north", "it's")
            .addProperty("big", 5_000_000_000L)
            .addProperty("bytes", new byte[] {1, 2, 3})
            .addProperty("open", true)
            .addProperty("ratio", 1.5)
            .addProperty("id", UUID.fromString("0f4b9e0e-3a5c-4e5c-8c3a-6b1f4b1f9a10"));
        table.createEntity(entity);
        fails("EntityAlreadyExists", () -> table.createEntity(entity));
        TableEntity read = table.getEntity("north", "it's");
        Rounds.ensure(read.getProperty("big").equals(5_000_000_000L), read.getProperties());
        read.addProperty("open", false);
        table.updateEntityWithResponse(read, TableEntityUpdateMode.MERGE, true, null, null);
        fails("UpdateConditionNotSatisfied", () ->
            table.updateEntityWithResponse(read, TableEntityUpdateMode.MERGE, true, null, null));
        List<TableTransactionAction> changes = new ArrayList<>();
        for (int number = 0; number < 100; number++) {
            changes.add(new TableTransactionAction(TableTransactionActionType.CREATE,
                new TableEntity("south", "" + number).addProperty("n", number)));
        }
        table.submitTransaction(changes);
        try {
            table.submitTransaction(changes.subList(0, 2));
            throw new AssertionError("a transaction twice");
        } catch (com.azure.data.tables.models.TableTransactionFailedException error) {
            String code = String.valueOf(error.getValue().getErrorCode());
            Rounds.ensure(code.equals("EntityAlreadyExists"), code);
            Rounds.ensure(error.getFailedTransactionActionIndex() == 0, error.getFailedTransactionActionIndex());
        }
        ListEntitiesOptions options =
            new ListEntitiesOptions().setFilter("PartitionKey eq 'south' and n ge 90").setTop(3);
        long found = table.listEntities(options, null, null).stream().count();
        Rounds.ensure(found == 10, found);
        table.deleteEntity("north", "it's");
        fails("ResourceNotFound", () -> table.getEntity("north", "it's"));
        table.deleteTable();
    }

    public static void main(String[] arguments) {
        connection = arguments[0];
        Map<String, Rounds.Round> rounds = new LinkedHashMap<>();
        rounds.put("blobs", Clients::blobs);
        rounds.put("queues", Clients::queues);
        rounds.put("tables", Clients::tables);
        Rounds.play(rounds);
    }
}
