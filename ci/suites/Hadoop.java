import java.io.FileNotFoundException;
import java.net.URI;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Hadoop's file systems for Azure, which Spark, Hive and Trino use: ABFS, once detecting that the
 * namespace is flat and once configured so, and the older WASB. They use production's host names;
 * the server is their HTTP proxy, and for ABFS the endpoint as well. The
 * arguments are an account, its key, and the server; and a fourth one if the account has a
 * hierarchical namespace, which WASB does not know. Rounds.java says what it prints.
 */
public final class Hadoop {
    private static void run(FileSystem files, boolean appends) throws Exception {
        byte[] big = new byte[9_000_000];
        new Random().nextBytes(big);
        Path folder = new Path("/dir/sub");
        Path file = new Path(folder, "a b+ü");
        Rounds.ensure(files.mkdirs(folder), "mkdirs");
        try (FSDataOutputStream out = files.create(file)) {
            out.write(big);
        }
        try (FSDataInputStream in = files.open(file)) {
            byte[] read = new byte[big.length];
            in.readFully(0, read);
            Rounds.ensure(Arrays.equals(big, read), "other bytes");
            byte[] part = new byte[50];
            in.readFully(5_000_000, part);
            Rounds.ensure(Arrays.equals(part, Arrays.copyOfRange(big, 5_000_000, 5_000_050)), "a range");
        }
        for (int number = 0; number < 5; number++) {
            files.create(new Path("/dir/f" + number)).close();
        }
        List<String> listed = Arrays.stream(files.listStatus(new Path("/dir")))
            .map(status -> status.getPath().getName() + (status.isDirectory() ? "/" : ""))
            .sorted().toList();
        Rounds.ensure(listed.equals(List.of("f0", "f1", "f2", "f3", "f4", "sub/")), listed);
        Rounds.ensure(files.rename(new Path("/dir"), new Path("/moved")), "rename");
        Rounds.ensure(!files.exists(new Path("/dir")), "the source is still there");
        FileStatus moved = files.getFileStatus(new Path("/moved/sub/a b+ü"));
        Rounds.ensure(moved.getLen() == big.length, moved);
        if (appends) {
            try (FSDataOutputStream out = files.append(new Path("/moved/f1"))) {
                out.write(7);
            }
            Rounds.ensure(files.getFileStatus(new Path("/moved/f1")).getLen() == 1, "append");
        }
        try {
            files.open(new Path("/nothing")).close();
            throw new AssertionError("nothing is opened");
        } catch (FileNotFoundException expected) {
            Rounds.ensure(files.delete(new Path("/moved"), true), "delete");
        }
        Rounds.ensure(files.listStatus(new Path("/")).length == 0, "something is left");
    }

    public static void main(String[] arguments) {
        String host = arguments[0] + ".blob.core.windows.net";
        Configuration common = new Configuration();
        common.set("fs.azure.account.key." + host, arguments[1]);
        common.set("fs.azure.account.key." + arguments[0] + ".dfs.core.windows.net", arguments[1]);
        common.set("fs.azure.always.use.https", "false");
        common.set("fs.azure.createRemoteFileSystemDuringInitialization", "true");
        Configuration told = new Configuration(common);
        told.set("fs.azure.abfs.endpoint", arguments[2]);
        boolean isHierarchical = arguments.length > 3;
        if (!isHierarchical) {
            told.set("fs.azure.account.hns.enabled", "false");
            told.set("fs.azure.fns.account.service.type", "BLOB");
        }
        Map<String, Configuration> settings = new LinkedHashMap<>();
        settings.put("abfs", common);
        settings.put("abfs-told", told);
        if (!isHierarchical) {
            settings.put("wasb", common);
        }
        Map<String, Rounds.Round> rounds = new LinkedHashMap<>();
        settings.forEach((name, configuration) -> {
            String scheme = name.split("-")[0];
            String suffix = isHierarchical || name.equals("abfs-told") ? ".dfs." : ".blob.";
            String authority = Rounds.unique("hadoop-") + "@" + host.replace(".blob.", suffix);
            URI uri = URI.create(scheme + "://" + authority + "/");
            rounds.put(name, () -> {
                try (FileSystem files = FileSystem.newInstance(uri, configuration)) {
                    run(files, scheme.equals("abfs"));
                }
            });
        });
        Rounds.play(rounds);
    }
}
