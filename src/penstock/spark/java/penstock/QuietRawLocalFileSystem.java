package penstock;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Sets permissions through java.nio: without Hadoop's native library the original forks chmod. */
public class QuietRawLocalFileSystem extends RawLocalFileSystem {
  public void setPermission(Path path, FsPermission permission) throws IOException {
    String bits = new FsPermission((short) (permission.toShort() & 0777)).toString();
    Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(bits));
  }
}
