package penstock.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Asks a broker how far its topics have come: one client for all who use that broker. */
public class Topics {
  private final Admin admin;
  private final long millis;
  private final ListOffsetsOptions options;
  private final Map first = new HashMap();
  private long looks = 0;

  public Topics(Map settings, long millis) {
    this.admin = AdminClient.create(settings);
    this.millis = millis;
    boolean committed = "read_committed".equals(settings.get("isolation.level"));
    this.options = new ListOffsetsOptions(
        committed ? IsolationLevel.READ_COMMITTED : IsolationLevel.READ_UNCOMMITTED);
  }

  /**
   * "topic partition first end", a line for each partition of these topics (separated by spaces), after a line
   * "ok NUMBER", as answers may reach those who asked in another order; or one line "away REASON", or "refused REASON". Which partitions there are and how far back they go is asked
   * for `anew`, or else as it was then. A topic that is not there has no line.
   */
  public synchronized String look(String topics, boolean anew) throws Exception {
    try {
      if (topics.isEmpty()) {
        admin.describeCluster().clusterId().get(millis, TimeUnit.MILLISECONDS);
        return "ok " + ++looks + "\n";
      }
      if (anew) {
        discover(topics);
      }
      return "ok " + ++looks + "\n" + offsets(topics);
    } catch (ExecutionException failed) {
      Throwable cause = failed.getCause();
      return (isRefusal(cause) ? "refused " : "away ") + reason(cause);
    } catch (java.util.concurrent.TimeoutException late) {
      return "away no answer in " + millis + " ms";
    }
  }

  private void discover(String topics) throws Exception {
    Map found = new HashMap();
    Map futures = admin.describeTopics(Arrays.asList(topics.split(" "))).topicNameValues();
    Iterator entries = futures.entrySet().iterator();
    while (entries.hasNext()) {
      Map.Entry entry = (Map.Entry) entries.next();
      TopicDescription described = described((KafkaFuture) entry.getValue());
      Iterator partitions = described == null ? new ArrayList().iterator() : described.partitions().iterator();
      while (partitions.hasNext()) {
        int partition = ((TopicPartitionInfo) partitions.next()).partition();
        found.put(new TopicPartition((String) entry.getKey(), partition), OffsetSpec.earliest());
      }
    }
    Map asked = new HashMap();
    if (!found.isEmpty()) {
      ask(found, asked);
    }
    List known = Arrays.asList(topics.split(" "));
    Iterator gone = first.keySet().iterator();
    while (gone.hasNext()) {
      if (known.contains(((TopicPartition) gone.next()).topic())) {
        gone.remove();
      }
    }
    first.putAll(asked);
  }

  private TopicDescription described(KafkaFuture future) throws Exception {
    try {
      return (TopicDescription) future.get(millis, TimeUnit.MILLISECONDS);
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof UnknownTopicOrPartitionException) {
        return null;
      }
      throw failed;
    }
  }

  private String offsets(String topics) throws Exception {
    List wanted = Arrays.asList(topics.split(" "));
    Map specs = new HashMap();
    Iterator known = first.keySet().iterator();
    while (known.hasNext()) {
      TopicPartition each = (TopicPartition) known.next();
      if (wanted.contains(each.topic())) {
        specs.put(each, OffsetSpec.latest());
      }
    }
    Map ends = new HashMap();
    if (!specs.isEmpty()) {
      ask(specs, ends);
    }
    StringBuilder lines = new StringBuilder();
    Iterator entries = ends.entrySet().iterator();
    while (entries.hasNext()) {
      Map.Entry entry = (Map.Entry) entries.next();
      TopicPartition each = (TopicPartition) entry.getKey();
      lines.append(each.topic()).append(' ').append(each.partition()).append(' ');
      lines.append(first.get(each)).append(' ').append(entry.getValue()).append('\n');
    }
    return lines.toString();
  }

  private void ask(Map specs, Map answers) throws Exception {
    ListOffsetsResult result = admin.listOffsets(specs, options);
    Iterator partitions = specs.keySet().iterator();
    while (partitions.hasNext()) {
      TopicPartition each = (TopicPartition) partitions.next();
      ListOffsetsResult.ListOffsetsResultInfo info = (ListOffsetsResult.ListOffsetsResultInfo)
          result.partitionResult(each).get(millis, TimeUnit.MILLISECONDS);
      answers.put(each, Long.valueOf(info.offset()));
    }
  }

  private static boolean isRefusal(Throwable cause) {
    return cause instanceof AuthenticationException || cause instanceof AuthorizationException
        || cause instanceof InvalidTopicException;
  }

  private static String reason(Throwable cause) {
    String text = cause.getMessage() == null ? cause.getClass().getSimpleName() : cause.getMessage();
    return text.replace('\n', ' ');
  }
}
