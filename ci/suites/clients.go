// Microsoft's Go SDKs for blobs, queues and tables, and two libraries on them (gocloud.dev and
// Thanos' objstore), each doing a piece of its usual work and reading back what it wrote.
//
//	clients CONNECTION_STRING [NAME...]
//
// Prints `FAILED name: why` for each round that fails, and `N passed, N failed` at the end.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/go-kit/log"
	"github.com/thanos-io/objstore"
	thanos "github.com/thanos-io/objstore/providers/azure"
	cloud "gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
)

var (
	connection string
	settings   = map[string]string{}
)

func unique(name string) string {
	drawn := make([]byte, 4)
	must(rand.Read(drawn))
	return fmt.Sprintf("%s%x", name, drawn)
}

func bytesOf(length int) []byte {
	drawn := make([]byte, length)
	must(rand.Read(drawn))
	return drawn
}

func body(data []byte) io.ReadSeekCloser {
	return struct {
		io.ReadSeeker
		io.Closer
	}{bytes.NewReader(data), io.NopCloser(nil)}
}

func box() *container.Client {
	service := must(azblob.NewClientFromConnectionString(connection, nil))
	made := service.ServiceClient().NewContainerClient(unique("go"))
	must(made.Create(background, nil))
	return made
}

func blobs() {
	box := box()
	big := bytesOf(9_000_000)
	block := box.NewBlockBlobClient("dir/a b+ü.bin")
	must(block.UploadBuffer(background, big, &azblob.UploadBufferOptions{
		BlockSize: 1_000_000, Concurrency: 4,
		Metadata: map[string]*string{"TimeToLive": to.Ptr("P1D")},
		Tags:     map[string]string{"project": "x y"},
	}))
	read := make([]byte, len(big))
	must(block.DownloadBuffer(background, read, nil))
	ensure(bytes.Equal(read, big), "other bytes")
	must(box.NewBlockBlobClient("streamed").UploadStream(background, bytes.NewReader(big), nil))
	part := must(block.DownloadStream(background, &blob.DownloadStreamOptions{
		Range: blob.HTTPRange{Offset: 1_000, Count: 2_000},
	}))
	ensure(bytes.Equal(must(io.ReadAll(part.Body)), big[1_000:3_000]), "another range")

	_, err := block.Upload(background, body(nil), &blockblob.UploadOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{
			IfNoneMatch: to.Ptr(azcore.ETagAny),
		}},
	})
	fails("BlobAlreadyExists", err)
	ensure(bloberror.HasCode(err, bloberror.BlobAlreadyExists), "HasCode does not know %v", err)
	holder := must(lease.NewBlobClient(block, nil))
	must(holder.AcquireLease(background, 15, nil))
	_, err = block.Delete(background, nil)
	fails("LeaseIdMissing", err)
	must(holder.ReleaseLease(background, nil))
	must(block.CreateSnapshot(background, nil))

	flat := box.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		MaxResults: to.Ptr(int32(1)),
		Include:    container.ListBlobsInclude{Metadata: true, Snapshots: true},
	})
	var names []string
	for flat.More() {
		for _, item := range must(flat.NextPage(background)).Segment.BlobItems {
			names = append(names, *item.Name)
		}
	}
	want := []string{"dir/a b+ü.bin", "dir/a b+ü.bin", "streamed"}
	ensure(slices.Equal(names, want), "listed %v", names)
	first := must(box.NewListBlobsHierarchyPager("/", nil).NextPage(background)).Segment
	ensure(*first.BlobPrefixes[0].Name == "dir/" && len(first.BlobItems) == 1, "another hierarchy")

	log := box.NewAppendBlobClient("log")
	must(log.Create(background, nil))
	must(log.AppendBlock(background, body([]byte("one\n")), nil))
	_, err = log.AppendBlock(background, body([]byte("two\n")), &appendblob.AppendBlockOptions{
		AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{
			AppendPosition: to.Ptr(int64(1)),
		},
	})
	fails("AppendPositionConditionNotMet", err)
	disk := box.NewPageBlobClient("disk")
	must(disk.Create(background, 4096, nil))
	must(disk.UploadPages(background, body(bytesOf(512)), blob.HTTPRange{Offset: 512, Count: 512}, nil))
	ranges := must(disk.NewGetPageRangesPager(&pageblob.GetPageRangesOptions{}).NextPage(background))
	ensure(*ranges.PageRange[0].Start == 512 && *ranges.PageRange[0].End == 1023, "other pages")

	batch := must(box.NewBatchBuilder())
	check(batch.Delete("log", nil))
	check(batch.Delete("disk", nil))
	done := must(box.SubmitBatch(background, batch, nil))
	for _, one := range done.Responses {
		check(one.Error)
	}
	_, err = disk.GetProperties(background, nil)
	fails("BlobNotFound", err)

	signed := must(block.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil))
	reader := must(blob.NewClientWithNoCredential(signed, nil))
	must(reader.GetProperties(background, nil))
	_, err = reader.Delete(background, nil)
	fails("AuthorizationPermissionMismatch", err)
	must(box.Delete(background, nil))
}

func queues() {
	service := must(azqueue.NewServiceClientFromConnectionString(connection, nil))
	queue := service.NewQueueClient(unique("go"))
	must(queue.Create(background, &azqueue.CreateOptions{
		Metadata: map[string]*string{"team": to.Ptr("billing")},
	}))
	for _, text := range []string{"one", "two", "three <&> ü"} {
		must(queue.EnqueueMessage(background, text, nil))
	}
	got := must(queue.DequeueMessages(background, &azqueue.DequeueMessagesOptions{
		NumberOfMessages: to.Ptr(int32(32)), VisibilityTimeout: to.Ptr(int32(30)),
	})).Messages
	ensure(len(got) == 3, "%d messages", len(got))
	updated := must(queue.UpdateMessage(background, *got[0].MessageID, *got[0].PopReceipt, "again", nil))
	_, err := queue.DeleteMessage(background, *got[0].MessageID, *got[0].PopReceipt, nil)
	fails("PopReceiptMismatch", err)
	must(queue.DeleteMessage(background, *got[0].MessageID, *updated.PopReceipt, nil))
	properties := must(queue.GetProperties(background, nil))
	ensure(*properties.ApproximateMessagesCount == 2, "a wrong count")
	must(queue.ClearMessages(background, nil))
	must(queue.Delete(background, nil))
}

func tables() {
	service := must(aztables.NewServiceClientFromConnectionString(connection, nil))
	table := service.NewClient(unique("go"))
	must(table.CreateTable(background, nil))
	entity := func(partition, row string, number int32) []byte {
		return must(json.Marshal(aztables.EDMEntity{
			Entity:     aztables.Entity{PartitionKey: partition, RowKey: row},
			Properties: map[string]any{"n": number, "big": aztables.EDMInt64(5_000_000_000)},
		}))
	}
	must(table.AddEntity(background, entity("north", "it", 1), nil))
	_, err := table.AddEntity(background, entity("north", "it", 1), nil)
	fails("EntityAlreadyExists", err)
	read := must(table.GetEntity(background, "north", "it", nil))
	var typed aztables.EDMEntity
	check(json.Unmarshal(read.Value, &typed))
	ensure(typed.Properties["big"] == aztables.EDMInt64(5_000_000_000), "%v", typed.Properties)
	_, err = table.UpdateEntity(background, entity("north", "it", 2), &aztables.UpdateEntityOptions{
		IfMatch:    to.Ptr(azcore.ETag("W/\"datetime'2020-01-01T00%3A00%3A00.1234567Z'\"")),
		UpdateMode: aztables.UpdateModeMerge,
	})
	fails("UpdateConditionNotSatisfied", err)
	must(table.UpdateEntity(background, entity("north", "it", 2), &aztables.UpdateEntityOptions{
		IfMatch: &read.ETag, UpdateMode: aztables.UpdateModeReplace,
	}))
	var changes []aztables.TransactionAction
	for number := range int32(100) {
		changes = append(changes, aztables.TransactionAction{
			ActionType: aztables.TransactionTypeAdd,
			Entity:     entity("south", fmt.Sprint(number), number),
		})
	}
	must(table.SubmitTransaction(background, changes, nil))
	_, err = table.SubmitTransaction(background, changes[:2], nil)
	fails("", err) // The SDK does not read the error code of a change.
	pages := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{
		Filter: to.Ptr("PartitionKey eq 'south' and n ge 90"), Top: to.Ptr(int32(3)),
	})
	found := 0
	for pages.More() {
		found += len(must(pages.NextPage(background)).Entities)
	}
	ensure(found == 10, "%d entities", found)
	must(table.DeleteEntity(background, "north", "it", nil))
	_, err = table.GetEntity(background, "north", "it", nil)
	fails("ResourceNotFound", err)
	must(table.Delete(background, nil))
}

func gocloud() {
	bucket := must(azureblob.OpenBucket(background, box(), nil))
	defer bucket.Close()
	big := bytesOf(9_000_000)
	check(bucket.WriteAll(background, "dir/a b+ü", big, &cloud.WriterOptions{
		Metadata: map[string]string{"team": "billing"},
	}))
	check(bucket.Copy(background, "copy", "dir/a b+ü", nil))
	ensure(bytes.Equal(must(bucket.ReadAll(background, "copy")), big), "other bytes")
	attributes := must(bucket.Attributes(background, "copy"))
	ensure(attributes.Metadata["team"] == "billing", "%v", attributes.Metadata)
	listed, _, err := bucket.ListPage(background, cloud.FirstPageToken, 10, &cloud.ListOptions{Delimiter: "/"})
	check(err)
	ensure(len(listed) == 2 && listed[1].IsDir, "%v", listed)
	check(bucket.Delete(background, "copy"))
	ensure(!must(bucket.Exists(background, "copy")), "it is still there")
}

func thanosObjstore() {
	name := unique("th")
	config := thanos.DefaultConfig
	config.StorageAccountName = settings["AccountName"]
	config.StorageConnectionString = connection
	config.ContainerName = name
	service := must(azblob.NewClientFromConnectionString(connection, nil))
	must(service.CreateContainer(background, name, nil))
	bucket := must(thanos.NewBucketWithConfig(log.NewNopLogger(), config, "clients", nil))
	defer bucket.Close()
	big := bytesOf(9_000_000)
	check(bucket.Upload(background, "block/chunks/000001", bytes.NewReader(big)))
	check(bucket.Upload(background, "block/meta.json", strings.NewReader("{}")))
	part := must(bucket.GetRange(background, "block/chunks/000001", 100, 200))
	ensure(bytes.Equal(must(io.ReadAll(part)), big[100:300]), "another range")
	var names []string
	check(bucket.Iter(background, "block/", func(name string) error {
		names = append(names, name)
		return nil
	}, objstore.WithRecursiveIter()))
	sort.Strings(names)
	ensure(slices.Equal(names, []string{"block/chunks/000001", "block/meta.json"}), "%v", names)
	_, err := bucket.Get(background, "block/none")
	ensure(bucket.IsObjNotFoundErr(err), "%v", err)
	check(bucket.Delete(background, "block/meta.json"))
	ensure(!must(bucket.Exists(background, "block/meta.json")), "it is still there")
}

func main() {
	connection = os.Args[1]
	for part := range strings.SplitSeq(connection, ";") {
		name, value, _ := strings.Cut(part, "=")
		settings[name] = value
	}
	play([]part{
		{"blobs", blobs}, {"queues", queues}, {"tables", tables},
		{"gocloud", gocloud}, {"thanos", thanosObjstore},
	}, os.Args[2:])
}
