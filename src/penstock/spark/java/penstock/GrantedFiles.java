package penstock;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.Partition;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * The Parquet files of one grant, as a relation that Spark reads like any other. Paths and sizes are
 * handed in, so no directory is listed and no file is looked up while a turn is planned.
 */
public class GrantedFiles implements FileIndex {
  private volatile PartitionDirectory directory;
  private volatile String[] paths;
  private volatile long bytes;
  private final GrantBook book;

  public GrantedFiles() {
    this(null);
  }

  GrantedFiles(GrantBook book) {
    this.book = book;
    grant(new String[0], new long[0]);
  }

  /** Where the grants stand that these are files of; null if they are handed in. */
  GrantBook book() {
    return book;
  }

  /** Replaces the files. Only between turns: a stage never runs two at once. */
  private void grant(String[] paths, long[] sizes) {
    FileStatus[] files = new FileStatus[paths.length];
    long total = 0;
    for (int i = 0; i < paths.length; i++) {
      files[i] = new FileStatus(sizes[i], false, 1, sizes[i], 0L, new Path(paths[i]));
      total += sizes[i];
    }
    this.directory = PartitionDirectory.apply(InternalRow.empty(), files);
    this.paths = paths;
    this.bytes = total;
  }

  /** The same from one string a file, "size path": one call over the Python bridge instead of many. */
  public final void grantLines(String lines) {
    String[] entries = lines.isEmpty() ? new String[0] : lines.split("\n");
    String[] names = new String[entries.length];
    long[] sizes = new long[entries.length];
    for (int i = 0; i < entries.length; i++) {
      int space = entries[i].indexOf(' ');
      sizes[i] = Long.parseLong(entries[i].substring(0, space));
      names[i] = entries[i].substring(space + 1);
    }
    grant(names, sizes);
  }

  /**
   * Spark shares files out by their size, the largest first: these partitions are to read them as they were granted.
   * Where one task reads them all, one partition after the other, that holds over all of them; else within each, as
   * tasks have even shares by size.
   */
  final void inOrder(Partition[] partitions, boolean byOneTask) {
    String[] granted = paths;
    if (granted.length < 2) {
      return;
    }
    HashMap places = new HashMap();
    for (int i = 0; i < granted.length; i++) {
      places.put(new Path(granted[i]), Integer.valueOf(i));
    }
    ArrayList files = new ArrayList();
    for (int i = 0; i < partitions.length; i++) {
      PartitionedFile[] own = ((FilePartition) partitions[i]).files();
      for (int j = 0; j < own.length; j++) {
        int place = ((Integer) places.get(own[j].toPath())).intValue();
        files.add(new Placed(byOneTask ? 0 : i, place, own[j]));
      }
    }
    Collections.sort(files);
    int next = 0;
    for (int i = 0; i < partitions.length; i++) {
      PartitionedFile[] own = ((FilePartition) partitions[i]).files();
      for (int j = 0; j < own.length; j++) {
        own[j] = ((Placed) files.get(next++)).file;
      }
    }
  }

  /** A file, or a part of one, with its place: partitions that are told apart first, then as it was granted. */
  private static final class Placed implements Comparable {
    private final int partition;
    private final int place;
    private final PartitionedFile file;

    Placed(int partition, int place, PartitionedFile file) {
      this.partition = partition;
      this.place = place;
      this.file = file;
    }

    public int compareTo(Object object) {
      Placed other = (Placed) object;
      if (partition != other.partition) {
        return Integer.compare(partition, other.partition);
      }
      return place != other.place ? Integer.compare(place, other.place) : Long.compare(file.start(), other.file.start());
    }
  }

  public HadoopFsRelation relation(SparkSession session, StructType schema) {
    return new HadoopFsRelation(
        this, partitionSchema(), schema, Option.empty(), new GrantedParquet(), strict(), session);
  }

  /** Whatever the session says: a granted file that is missing or damaged is an error, never skipped. */
  private static Map strict() {
    Map none = (Map) Map$.MODULE$.empty();
    Map missing = (Map) none.updated("ignoreMissingFiles", "false");
    return (Map) missing.updated("ignoreCorruptFiles", "false");
  }

  public Seq rootPaths() {
    return (Seq) Nil$.MODULE$;
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    PartitionDirectory now = directory;
    Seq none = (Seq) Nil$.MODULE$;
    return paths.length == 0 ? none : (Seq) none.prepended(now);
  }

  public String[] inputFiles() {
    return paths;
  }

  public void refresh() {}

  public long sizeInBytes() {
    return bytes;
  }

  public StructType partitionSchema() {
    return new StructType();
  }
}
