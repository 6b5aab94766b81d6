package penstock.kafka;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.kafka010.KafkaBatchInputPartition;
import org.apache.spark.sql.kafka010.KafkaBatchReaderFactory$;
import org.apache.spark.sql.kafka010.KafkaOffsetRange;
import org.apache.spark.sql.kafka010.KafkaRecordToRowConverter$;
import org.apache.spark.sql.kafka010.KafkaSourceProvider$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import penstock.Granted;
import scala.Option;

/**
 * The offsets of one grant, as a table that Spark's own connector reads. The ranges are handed in, so no broker is
 * asked while a turn is planned, and a turn reads just them.
 */
public class GrantedOffsets implements SupportsRead, ScanBuilder, Scan, Batch, Granted {
  private final Map params;
  private final boolean headers;
  private final long pollMillis;
  private volatile InputPartition[] granted = new InputPartition[0];

  public GrantedOffsets(Map settings, String group, boolean headers, long pollMillis) {
    this.params = KafkaSourceProvider$.MODULE$.kafkaParamsForExecutors(Settings.scala(settings), group);
    this.headers = headers;
    this.pollMillis = pollMillis;
  }

  /** One range a line, "topic partition from until"; each is a partition of the scan. Only between turns. */
  public final void grantLines(String lines) {
    List ranges = new ArrayList();
    String[] entries = lines.isEmpty() ? new String[0] : lines.split("\n");
    for (int i = 0; i < entries.length; i++) {
      String[] words = entries[i].split(" ");
      TopicPartition partition = new TopicPartition(words[0], Integer.parseInt(words[1]));
      KafkaOffsetRange range =
          new KafkaOffsetRange(partition, Long.parseLong(words[2]), Long.parseLong(words[3]), Option.empty());
      // Rows that are gone are an error, never skipped: what to do then is not the reader's to say.
      ranges.add(new KafkaBatchInputPartition(range, params, pollMillis, true, headers));
    }
    granted = (InputPartition[]) ranges.toArray(new InputPartition[ranges.size()]);
  }

  public LogicalPlan relation() {
    return DataSourceV2Relation$.MODULE$.create(this, Option.empty(), Option.empty());
  }

  public String name() {
    return "kafka";
  }

  public StructType schema() {
    return KafkaRecordToRowConverter$.MODULE$.kafkaSchema(headers);
  }

  public StructType readSchema() {
    return schema();
  }

  public Set capabilities() {
    return Collections.singleton(TableCapability.BATCH_READ);
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return this;
  }

  public Scan build() {
    return this;
  }

  public Batch toBatch() {
    return this;
  }

  public InputPartition[] planInputPartitions() {
    return granted;
  }

  public PartitionReaderFactory createReaderFactory() {
    return KafkaBatchReaderFactory$.MODULE$;
  }
}
