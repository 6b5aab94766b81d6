package penstock;

import org.apache.hadoop.fs.LocalFileSystem;

/**
 * Hadoop's local file system without its forks: permissions are set in the JVM, checksum files are
 * neither written nor read. Stays a LocalFileSystem, because RocksDB's upload casts to it.
 */
public class QuietLocalFileSystem extends LocalFileSystem {
  public QuietLocalFileSystem() {
    super(new QuietRawLocalFileSystem());
    setWriteChecksum(false);
    setVerifyChecksum(false);
  }
}
