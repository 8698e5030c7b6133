// Microsoft's Go library for Data Lake Storage, against an account with a hierarchical namespace.
//
//	lake BLOB ACCOUNT KEY
//
// BLOB is `host:port`. Prints `FAILED name: why` for each round that fails, and `N passed, N failed`
// at the end.
package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azdatalake"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azdatalake/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azdatalake/filesystem"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azdatalake/service"
)

// fileSystem creates one.
func fileSystem() *filesystem.Client {
	credential := must(azdatalake.NewSharedKeyCredential(os.Args[2], os.Args[3]))
	url := fmt.Sprintf("http://%s/%s", os.Args[1], os.Args[2])
	lake := must(service.NewClientWithSharedKeyCredential(url, credential, nil))
	drawn := make([]byte, 4)
	must(rand.Read(drawn))
	system := lake.NewFileSystemClient(fmt.Sprintf("lake-%x", drawn))
	must(system.Create(background, nil))
	return system
}

func names(system *filesystem.Client, under string) (found []string) {
	options := filesystem.ListPathsOptions{Prefix: &under, MaxResults: to.Ptr[int32](2)}
	pages := system.NewListPathsPager(true, &options)
	for pages.More() {
		for _, path := range must(pages.NextPage(background)).Paths {
			found = append(found, *path.Name)
		}
	}
	return found
}

func files() {
	system := fileSystem()
	must(system.CreateDirectory(background, "a/b", nil))
	file := system.NewFileClient("a/b/f")
	must(file.Create(background, nil))
	big := make([]byte, 9_000_000)
	must(rand.Read(big))
	check(file.UploadBuffer(background, big, nil))
	read := make([]byte, len(big))
	must(file.DownloadBuffer(background, read, nil))
	ensure(bytes.Equal(read, big), "other bytes")
	must(file.SetMetadata(background, map[string]*string{"team": to.Ptr("billing")}, nil))
	properties := must(file.GetProperties(background, nil))
	ensure(*properties.ContentLength == int64(len(big)), "%d", *properties.ContentLength)
	ensure(*properties.Permissions == "rw-r-----", "%s", *properties.Permissions)
	must(file.Delete(background, nil))
	_, err := file.GetProperties(background, nil)
	ensure(err != nil, "it is still there")
}

func renames() {
	system := fileSystem()
	for _, name := range []string{"x/1", "x/y/2", "x/a b%+ü/3"} {
		must(system.NewFileClient(name).Create(background, nil))
	}
	must(system.CreateDirectory(background, "new", nil))
	must(system.NewDirectoryClient("x").Rename(background, "new/place", nil))
	expected := []string{
		"new/place", "new/place/1", "new/place/a b%+ü", "new/place/a b%+ü/3", "new/place/y", "new/place/y/2",
	}
	found := names(system, "new")
	ensure(slices.Equal(found, expected), "%v", found)
	_, err := system.NewDirectoryClient("none").Rename(background, "other", nil)
	fails("SourcePathNotFound", err)
	must(system.NewDirectoryClient("new").Delete(background, nil))
	ensure(len(names(system, "")) == 0, "something is left")
}

func access() {
	system := fileSystem()
	folder := system.NewDirectoryClient("d")
	must(folder.Create(background, &directory.CreateOptions{Permissions: to.Ptr("0770"), Umask: to.Ptr("0000")}))
	must(system.NewFileClient("d/f").Create(background, nil))
	changed := must(folder.UpdateAccessControlRecursive(background, "user:bob:r-x", nil))
	ensure(*changed.DirectoriesSuccessful == 1 && *changed.FilesSuccessful == 1, "%v", changed)
	found := must(system.NewFileClient("d/f").GetAccessControl(background, nil))
	ensure(strings.Contains(*found.ACL, "user:bob:r-x"), "%s", *found.ACL)
	ensure(*found.Owner == "$superuser", "%s", *found.Owner)
}

func main() {
	play([]part{{"files", files}, {"renames", renames}, {"access", access}}, nil)
}
