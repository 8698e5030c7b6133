module lake

go 1.24

require (
	github.com/Azure/azure-sdk-for-go/sdk/azcore v1.18.1
	github.com/Azure/azure-sdk-for-go/sdk/storage/azdatalake v1.4.2
)
