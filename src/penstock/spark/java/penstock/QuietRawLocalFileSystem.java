package penstock;

import java.io.File;
import java.io.IOException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Sets permissions through java.io.File: without Hadoop's native library the original forks chmod. */
public class QuietRawLocalFileSystem extends RawLocalFileSystem {
  public void setPermission(Path path, FsPermission permission) throws IOException {
    File file = pathToFile(path);
    int mode = permission.toShort();
    file.setReadable((mode & 0444) != 0, (mode & 0044) == 0);
    file.setWritable((mode & 0222) != 0, (mode & 0022) == 0);
    file.setExecutable((mode & 0111) != 0, (mode & 0011) == 0);
  }
}
