import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.file.datalake.DataLakeDirectoryClient;
import com.azure.storage.file.datalake.DataLakeFileClient;
import com.azure.storage.file.datalake.DataLakeFileSystemClient;
import com.azure.storage.file.datalake.DataLakePathClientBuilder;
import com.azure.storage.file.datalake.DataLakeServiceClient;
import com.azure.storage.file.datalake.DataLakeServiceClientBuilder;
import com.azure.storage.file.datalake.models.AccessControlChangeCounters;
import com.azure.storage.file.datalake.models.DataLakeRequestConditions;
import com.azure.storage.file.datalake.models.DataLakeStorageException;
import com.azure.storage.file.datalake.models.ListPathsOptions;
import com.azure.storage.file.datalake.models.PathAccessControl;
import com.azure.storage.file.datalake.models.PathAccessControlEntry;
import com.azure.storage.file.datalake.models.PathItem;
import com.azure.storage.file.datalake.models.PathProperties;
import com.azure.storage.file.datalake.models.PathRemoveAccessControlEntry;
import com.azure.storage.file.datalake.options.DataLakePathCreateOptions;
import com.azure.storage.file.datalake.sas.DataLakeServiceSasSignatureValues;
import com.azure.storage.file.datalake.sas.PathSasPermission;
import com.azure.storage.file.datalake.specialized.DataLakeLeaseClient;
import com.azure.storage.file.datalake.specialized.DataLakeLeaseClientBuilder;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Microsoft's Java library for Data Lake Storage, against an account with a hierarchical namespace.
 * The argument is a connection string; Rounds.java says what it prints.
 */
public final class Lake {
    private static DataLakeServiceClient lake;
    private static BlobServiceClient blobs;

    private static DataLakeFileSystemClient fileSystem() {
        return lake.createFileSystem(Rounds.unique("lake-"));
    }

    /** Checks that a call is refused with this code. */
    private static void fails(String code, Runnable call) {
        String found = "nothing";
        try {
            call.run();
        } catch (DataLakeStorageException error) {
            found = String.valueOf(error.getErrorCode());
        }
        Rounds.ensure(found.equals(code), found + " in place of " + code);
    }

    private static void upload(DataLakeFileSystemClient system, String path) {
        system.getFileClient(path).upload(BinaryData.fromString(path));
    }

    private static String text(DataLakeFileClient file) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        file.read(out);
        return out.toString(StandardCharsets.UTF_8);
    }

    /** The paths below a directory, those of directories with a `/` at the end. */
    private static List<String> paths(DataLakeFileSystemClient system, String under, int page) {
        ListPathsOptions options = new ListPathsOptions().setRecursive(true).setPath(under).setMaxResults(page);
        List<String> found = new ArrayList<>();
        for (PathItem path : system.listPaths(options, null)) {
            found.add(path.getName() + (path.isDirectory() ? "/" : ""));
        }
        return found;
    }

    private static void files() throws IOException {
        DataLakeFileSystemClient system = fileSystem();
        DataLakeDirectoryClient folder = system.createDirectory("a/b");
        byte[] big = new byte[9_000_000];
        new Random().nextBytes(big);
        DataLakeFileClient file = folder.createFile("f ü+%", true);
        file.append(new ByteArrayInputStream(big, 0, 4_000_000), 0, 4_000_000);
        file.append(new ByteArrayInputStream(big, 4_000_000, 5_000_000), 4_000_000, 5_000_000);
        Rounds.ensure(file.getProperties().getFileSize() == 0, "a length before the flush");
        fails("InvalidFlushPosition", () -> file.flush(big.length - 1, true));
        file.flush(big.length, true);
        try (InputStream in = file.openInputStream().getInputStream()) {
            Rounds.ensure(Arrays.equals(in.readAllBytes(), big), "other bytes");
        }
        file.setMetadata(Map.of("team", "billing"));
        PathProperties properties = file.getProperties();
        Rounds.ensure(properties.getFileSize() == big.length, properties.getFileSize());
        Rounds.ensure(!properties.isDirectory(), "a file is a directory");
        Rounds.ensure(properties.getMetadata().equals(Map.of("team", "billing")), properties.getMetadata());
        Rounds.ensure(folder.getProperties().isDirectory(), "a directory is a file");
        fails("PathAlreadyExists", () -> folder.createFile("f ü+%"));
        fails("PathNotFound", () -> system.getFileClient("none").append(BinaryData.fromString("x"), 0));
        long length = blobs.getBlobContainerClient(system.getFileSystemName())
            .getBlobClient("a/b/f ü+%").getProperties().getBlobSize();
        Rounds.ensure(length == big.length, length);
        system.delete();
    }

    private static void renames() {
        DataLakeFileSystemClient system = fileSystem();
        for (String name : List.of("x/1", "x/y/2", "x/a b%+ü/3")) {
            upload(system, name);
        }
        system.createDirectory("new");
        DataLakeDirectoryClient moved = system.getDirectoryClient("x").rename(null, "new/place");
        Rounds.ensure(moved.exists() && !system.getDirectoryClient("x").exists(), "not moved");
        List<String> expected = List.of("new/place/", "new/place/1", "new/place/a b%+ü/",
            "new/place/a b%+ü/3", "new/place/y/", "new/place/y/2");
        for (int page : List.of(1, 4, 5000)) {
            Rounds.ensure(paths(system, "new", page).equals(expected), paths(system, "new", page));
        }
        // The client that a rename returns names `%25` where the path has `%`, so it is not used.
        system.getFileClient("new/place/a b%+ü/3").rename(null, "new/100%");
        DataLakeFileClient file = system.getFileClient("new/100%");
        Rounds.ensure(text(file).equals("x/a b%+ü/3"), text(file));
        upload(system, "other");
        DataLakeRequestConditions missing = new DataLakeRequestConditions().setIfNoneMatch("*");
        fails("PathAlreadyExists", () -> file.renameWithResponse(null, "other", null, missing, null, null));
        fails("SourcePathNotFound", () -> system.getFileClient("none").rename(null, "other"));
        fails("DirectoryNotEmpty", () -> system.deleteDirectory("new"));
        system.getDirectoryClient("new").deleteRecursively();
        Rounds.ensure(paths(system, null, 5000).equals(List.of("other")), paths(system, null, 5000));
    }

    private static void access() {
        DataLakeFileSystemClient system = fileSystem();
        DataLakeDirectoryClient folder = system.createDirectoryWithResponse("d",
            new DataLakePathCreateOptions().setPermissions("rwxrwx---").setUmask("0000"), null, null).getValue();
        upload(system, "d/e/f");
        List<PathAccessControlEntry> list = PathAccessControlEntry.parseList(
            "user::rwx,group::r-x,other::---,default:user::rwx,default:user:bob:r-x,"
                + "default:group::r-x,default:other::---");
        folder.setAccessControlList(list, null, null);
        upload(system, "d/g");
        DataLakeFileClient file = system.getFileClient("d/g");
        PathAccessControl found = file.getAccessControl();
        Rounds.ensure(found.getOwner().equals("$superuser"), found.getOwner());
        String entries = PathAccessControlEntry.serializeList(found.getAccessControlList());
        Rounds.ensure(entries.contains("user:bob:r-x"), entries);
        AccessControlChangeCounters counters = folder.updateAccessControlRecursive(
            PathAccessControlEntry.parseList("user:eve:r--")).getCounters();
        Rounds.ensure(counters.getChangedDirectoriesCount() == 2, counters.getChangedDirectoriesCount());
        Rounds.ensure(counters.getChangedFilesCount() == 2, counters.getChangedFilesCount());
        Rounds.ensure(counters.getFailedChangesCount() == 0, counters.getFailedChangesCount());
        folder.removeAccessControlRecursive(PathRemoveAccessControlEntry.parseList("user:eve,user:bob"));
        entries = PathAccessControlEntry.serializeList(file.getAccessControl().getAccessControlList());
        Rounds.ensure(!entries.contains("eve") && !entries.contains("bob"), entries);
        folder.setAccessControlRecursive(PathAccessControlEntry.parseList("user::rwx,group::---,other::---"));
        String permissions = system.getFileClient("d/e/f").getAccessControl().getPermissions().toString();
        Rounds.ensure(permissions.equals("0700"), permissions);
    }

    private static void leases() {
        DataLakeFileSystemClient system = fileSystem();
        upload(system, "f");
        DataLakeFileClient file = system.getFileClient("f");
        DataLakeLeaseClient lease = new DataLakeLeaseClientBuilder().fileClient(file).buildClient();
        lease.acquireLease(-1);
        fails("LeaseIdMissing", file::delete);
        fails("LeaseIdMissing", () -> file.rename(null, "g"));
        DataLakeRequestConditions holder = new DataLakeRequestConditions().setLeaseId(lease.getLeaseId());
        DataLakeFileClient moved =
            file.renameWithResponse(null, "g", holder, null, null, null).getValue();
        Rounds.ensure(text(moved).equals("f"), text(moved));
        DataLakeLeaseClient second = new DataLakeLeaseClientBuilder().fileClient(moved).buildClient();
        second.breakLease();
        moved.delete();
        Rounds.ensure(!moved.exists(), "it is still there");
    }

    private static void signatures() {
        DataLakeFileSystemClient system = fileSystem();
        upload(system, "in/deep/f");
        upload(system, "out/f");
        String signature = system.getDirectoryClient("in").generateSas(new DataLakeServiceSasSignatureValues(
            OffsetDateTime.now().plusHours(1), new PathSasPermission().setReadPermission(true).setListPermission(true)));
        DataLakePathClientBuilder reader = new DataLakePathClientBuilder()
            .endpoint(lake.getAccountUrl()).fileSystemName(system.getFileSystemName()).sasToken(signature);
        Rounds.ensure(text(reader.pathName("in/deep/f").buildFileClient()).equals("in/deep/f"), "other bytes");
        DataLakeDirectoryClient folder = reader.pathName("in").buildDirectoryClient();
        long listed = folder.listPaths(true, false, null, null).stream().count();
        Rounds.ensure(listed == 2, listed);
        fails("AuthorizationPermissionMismatch", () -> folder.createFile("g"));
        DataLakeFileClient beyond = reader.pathName("out/f").buildFileClient();
        fails("AuthenticationFailed", beyond::getAccessControl);
    }

    public static void main(String[] arguments) {
        lake = new DataLakeServiceClientBuilder().connectionString(arguments[0]).buildClient();
        blobs = new BlobServiceClientBuilder().connectionString(arguments[0]).buildClient();
        Map<String, Rounds.Round> rounds = new LinkedHashMap<>();
        rounds.put("files", Lake::files);
        rounds.put("renames", Lake::renames);
        rounds.put("access", Lake::access);
        rounds.put("leases", Lake::leases);
        rounds.put("signatures", Lake::signatures);
        Rounds.play(rounds);
    }
}
