module clients

go 1.24

require (
	github.com/Azure/azure-sdk-for-go/sdk/azcore v1.23.3
	github.com/Azure/azure-sdk-for-go/sdk/data/aztables v1.4.0
	github.com/Azure/azure-sdk-for-go/sdk/storage/azblob v1.8.3
	github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue v1.0.1
	github.com/go-kit/log v0.2.1
	github.com/thanos-io/objstore v0.0.0-20250804093838-71d60dfee488
	gocloud.dev v0.47.0
)
