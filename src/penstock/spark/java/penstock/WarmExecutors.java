package penstock;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.deploy.SparkHadoopUtil$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.InternalRow$;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.execution.streaming.state.NoPrefixKeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.execution.streaming.state.StateStore$;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider$;
import org.apache.spark.sql.execution.streaming.state.StateStoreProviderId;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.Utils$;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters$;

/**
 * An executor does once what turns do before it is given tasks: reads a file, compiles code, keeps state, writes rows.
 * The first task of a turn would wait for that code to be loaded, and all others of the turn for that task.
 */
public class WarmExecutors implements SparkPlugin {
  private static final Logger LOG = LoggerFactory.getLogger("penstock");
  private static final int ROWS = 200;
  private static final Set READY = ConcurrentHashMap.newKeySet();

  /** Whether the executors of this driver's application tell when they are ready. */
  private static volatile boolean told;

  public DriverPlugin driverPlugin() {
    return new Told();
  }

  public ExecutorPlugin executorPlugin() {
    return new Warming();
  }

  /** Spark counts an executor as registered before its plugins begin, and gives it tasks once they have begun. */
  static boolean isReady(String executor) {
    return !told || READY.contains(executor);
  }

  private static final class Told implements DriverPlugin {
    public Map init(SparkContext spark, PluginContext context) {
      READY.clear();
      told = true;
      return Collections.emptyMap();
    }

    public Object receive(Object executor) {
      READY.add(executor);
      return null;
    }

    public void shutdown() {
      told = false;
    }
  }

  private static final class Warming implements ExecutorPlugin {
    public void init(PluginContext context, Map settings) {
      try {
        warm(context.conf());
      } catch (Throwable problem) {
        LOG.error("an executor begins cold: its tasks load what they need, only later", problem);
      }
      try {
        context.send(context.executorID());
      } catch (IOException problem) {
        throw new UncheckedIOException(problem);
      }
    }
  }

  /** All of it, in this JVM; how many rows it has read. */
  public static int warm(SparkConf settings) throws Exception {
    File folder = Files.createTempDirectory("penstock-warm").toFile();
    try {
      Configuration hadoop = SparkHadoopUtil$.MODULE$.get().newConfiguration(settings);
      UnsafeRow row = compiled();
      int read = files(hadoop, new File(folder, "rows.parquet"));
      state(hadoop, new File(folder, "state"), row);
      rows(row);
      return read;
    } finally {
      Utils$.MODULE$.deleteRecursively(folder);
    }
  }

  private static StructType schema() {
    return new StructType().add("word", DataTypes.StringType).add("count", DataTypes.LongType);
  }

  private static UnsafeRow compiled() {
    UnsafeProjection projection = UnsafeProjection$.MODULE$.create(schema());
    InternalRow row = InternalRow$.MODULE$.fromSeq(CollectionConverters$.MODULE$.asScala(
        Arrays.asList(new Object[] {org.apache.spark.unsafe.types.UTF8String.fromString("word"), Long.valueOf(1)})).toSeq());
    return projection.apply(row);
  }

  private static int files(Configuration hadoop, File file) throws Exception {
    MessageType type = MessageTypeParser.parseMessageType("message rows { optional binary word (UTF8); optional int64 count; }");
    Path path = new Path(file.toURI());
    ParquetWriter writer = ExampleParquetWriter.builder(path).withType(type).withConf(hadoop)
        .withWriterVersion(ParquetProperties.WriterVersion.PARQUET_1_0).build();
    for (int i = 0; i < ROWS; i++) {
      Group row = new SimpleGroup(type);
      row.add("word", "word " + i);
      row.add("count", (long) i);
      writer.write(row);
    }
    writer.close();
    VectorizedParquetRecordReader reader = new VectorizedParquetRecordReader(false, ROWS);
    reader.initialize(path.toString(), Arrays.asList(new Object[] {"word", "count"}));
    reader.initBatch(new StructType(), null);
    int read = 0;
    while (reader.nextKeyValue()) {
      read++;
    }
    reader.close();
    return read;
  }

  private static void state(Configuration hadoop, File folder, UnsafeRow row) throws Exception {
    SQLConf settings = new SQLConf();
    settings.setConfString("spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider");
    StructType schema = schema();
    StateStoreProviderId id = new StateStoreProviderId(
        new StateStoreId(folder.toURI().toString(), 0L, 0, "default"), java.util.UUID.randomUUID());
    StateStoreProvider provider = StateStoreProvider$.MODULE$.createAndInit(id, schema, schema,
        new NoPrefixKeyStateEncoderSpec(schema), false, new StateStoreConf(settings, (scala.collection.immutable.Map)
        scala.collection.immutable.Map$.MODULE$.empty()), hadoop, false, Option.empty());
    try {
      for (long version = 0; version < 2; version++) {
        StateStore store = provider.getStore(version, Option.empty(), false, false);
        store.put(row, row, StateStore$.MODULE$.DEFAULT_COL_FAMILY_NAME());
        store.get(row, StateStore$.MODULE$.DEFAULT_COL_FAMILY_NAME());
        store.commit();
      }
    } finally {
      provider.close();
    }
  }

  private static void rows(UnsafeRow row) {
    Iterator one = CollectionConverters$.MODULE$.asScala(Collections.singletonList(row).iterator());
    new BatchRows(schema(), "UTC").apply(null, one);
  }
}
