package penstock;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SchedulerBackend;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend;
import org.apache.spark.status.api.v1.ExecutorSummary;

/**
 * The executors of an application, and the processor time of its tasks by stage of Penstock, by replica (the
 * partition) and by executor. Told by Spark as it happens, so that asking costs no job.
 */
public class ClusterWatch extends SparkListener {
  private static final int MOST_STAGES = 10000;

  private final SparkContext spark;
  private final Map executors = new ConcurrentHashMap();
  private final Map pools = new ConcurrentHashMap();
  private final Map shuffling = new ConcurrentHashMap();
  private final Map sums = new TreeMap();
  private final Map running = new HashMap();
  private final Set warm = new HashSet();
  private final Map coldTasks = new ConcurrentHashMap();

  private ClusterWatch(SparkContext spark) {
    this.spark = spark;
  }

  public static ClusterWatch of(SparkContext spark) {
    ClusterWatch watch = new ClusterWatch(spark);
    spark.addSparkListener(watch);
    // Those that came before it listened.
    scala.collection.Iterator known = spark.statusStore().executorList(true).iterator();
    while (known.hasNext()) {
      ExecutorSummary each = (ExecutorSummary) known.next();
      String host = each.hostPort().substring(0, Math.max(each.hostPort().lastIndexOf(':'), 0));
      watch.executors.putIfAbsent(each.id(), told(host, each.totalCores(), each.attributes()));
    }
    return watch;
  }

  /** Listens no more. */
  public void close() {
    spark.removeSparkListener(this);
  }

  private static String told(String host, int cores, scala.collection.Map attributes) {
    return cores + "\t" + host + "\t" + attribute(attributes, "NODE") + "\t" + attribute(attributes, "REGION");
  }

  private static String attribute(scala.collection.Map attributes, String name) {
    return attributes.contains(name) ? (String) attributes.apply(name) : "";
  }

  public void onExecutorAdded(SparkListenerExecutorAdded event) {
    executors.put(event.executorId(), told(event.executorInfo().executorHost(),
        event.executorInfo().totalCores(), event.executorInfo().attributes()));
  }

  public void onStageSubmitted(SparkListenerStageSubmitted event) {
    String pool = event.properties() == null ? null : event.properties().getProperty("spark.scheduler.pool");
    if (pool != null) {
      Integer stage = Integer.valueOf(event.stageInfo().stageId());
      pools.put(stage, pool);
      if (event.stageInfo().shuffleDepId().isDefined()) {
        shuffling.put(stage, Boolean.TRUE);
      }
    }
  }

  public void onStageCompleted(SparkListenerStageCompleted event) {
    // Tasks that are told of after their stage are few; the bound is for stages that never end.
    if (pools.size() > MOST_STAGES) {
      pools.clear();
      shuffling.clear();
    }
    pools.remove(Integer.valueOf(event.stageInfo().stageId()));
    shuffling.remove(Integer.valueOf(event.stageInfo().stageId()));
  }

  public void onTaskStart(SparkListenerTaskStart event) {
    String key = keyOf(event.stageId(), event.taskInfo());
    if (key != null) {
      synchronized (sums) {
        boolean cold = !warm.contains(placeOf(key));
        String counted = cold ? coldKeyOf(key) : key;
        if (cold) {
          String stage = key.split("\t", -1)[0];
          coldTasks.put(stage, Long.valueOf(coldTasks(stage) + 1));
        }
        sumOf(counted);
        running.put(Long.valueOf(event.taskInfo().taskId()), new Begun(counted, System.nanoTime()));
      }
    }
  }

  public void onTaskEnd(SparkListenerTaskEnd event) {
    Begun begun;
    synchronized (sums) {
      begun = (Begun) running.remove(Long.valueOf(event.taskInfo().taskId()));
    }
    String key = keyOf(event.stageId(), event.taskInfo());
    TaskMetrics metrics = event.taskMetrics();
    if (key == null || metrics == null) {
      return;
    }
    synchronized (sums) {
      warm.add(placeOf(key));
      long[] sum = sumOf(begun != null ? begun.key : key);
      sum[0] += metrics.executorCpuTime() + metrics.executorDeserializeCpuTime();
      sum[1] += metrics.executorRunTime();
      sum[2] += 1;
    }
  }

  /**
   * Stage of Penstock, replica and executor of a task; null if it is no stage's. Tasks that hand rows to a shuffle are
   * no replica's: those come after it.
   */
  private String keyOf(int stage, TaskInfo task) {
    Object pool = pools.get(Integer.valueOf(stage));
    int replica = shuffling.containsKey(Integer.valueOf(stage)) ? -1 : task.partitionId();
    return pool == null ? null : pool + "\t" + replica + "\t" + task.executorId();
  }

  /** Stage of Penstock, before or after a shuffle, and executor: where the same code runs. */
  private static String placeOf(String key) {
    String[] parts = key.split("\t", -1);
    return parts[0] + "\t" + ("-1".equals(parts[1]) ? "before" : "after") + "\t" + parts[2];
  }

  /** The same without a replica, as -2: what loads code tells nothing of how busy one is with its rows. */
  private static String coldKeyOf(String key) {
    String[] parts = key.split("\t", -1);
    return parts[0] + "\t-2\t" + parts[2];
  }

  private long[] sumOf(String key) {
    long[] sum = (long[]) sums.get(key);
    if (sum == null) {
      sum = new long[3];
      sums.put(key, sum);
    }
    return sum;
  }

  /** By key, the milliseconds of the tasks that run. */
  private Map sofar() {
    Map found = new HashMap();
    long now = System.nanoTime();
    Iterator tasks = running.values().iterator();
    while (tasks.hasNext()) {
      Begun each = (Begun) tasks.next();
      Object before = found.get(each.key);
      long millis = (now - each.at) / 1000000 + (before == null ? 0 : ((Long) before).longValue());
      found.put(each.key, Long.valueOf(millis));
    }
    return found;
  }

  private static class Begun {
    private final String key;
    private final long at;

    Begun(String key, long at) {
      this.key = key;
      this.at = at;
    }
  }

  /** A line for each executor that takes tasks now: id, cores, host, node, region. */
  public String executors() {
    SchedulerBackend backend = spark.schedulerBackend();
    StringBuilder lines = new StringBuilder();
    if (!(backend instanceof CoarseGrainedSchedulerBackend)) {
      return "";
    }
    CoarseGrainedSchedulerBackend all = (CoarseGrainedSchedulerBackend) backend;
    scala.collection.Iterator ids = all.getExecutorIds().iterator();
    while (ids.hasNext()) {
      String id = (String) ids.next();
      Object known = executors.get(id);
      if (known != null && all.isExecutorActive(id) && WarmExecutors.isReady(id)) {
        lines.append(id).append('\t').append(known).append('\n');
      }
    }
    return lines.toString();
  }

  /** A line for each executor that was ever there: id, node. */
  public String everyNode() {
    StringBuilder lines = new StringBuilder();
    Iterator all = executors.entrySet().iterator();
    while (all.hasNext()) {
      Map.Entry each = (Map.Entry) all.next();
      lines.append(each.getKey()).append('\t').append(((String) each.getValue()).split("\t", -1)[2]).append('\n');
    }
    return lines.toString();
  }

  /**
   * A line for each stage, replica and executor: CPU nanoseconds, milliseconds in tasks, tasks; since the start. Tasks
   * that run count with the time they have run, and with the processor's share of it that those before them had. The
   * tasks of a stage on an executor that began before its first one there had ended count for replica -2: they wait for
   * code to be loaded and compiled, which tells nothing of their rows.
   */
  public String use() {
    StringBuilder lines = new StringBuilder();
    synchronized (sums) {
      Map sofar = sofar();
      Iterator all = sums.entrySet().iterator();
      while (all.hasNext()) {
        Map.Entry each = (Map.Entry) all.next();
        long[] sum = (long[]) each.getValue();
        Object more = sofar.get(each.getKey());
        long millis = more == null ? 0 : ((Long) more).longValue();
        long nanos = sum[1] == 0 ? 0 : Math.min((long) ((double) sum[0] / sum[1] * millis), millis * 1000000);
        lines.append(each.getKey()).append('\t').append(sum[0] + nanos).append('\t').append(sum[1] + millis)
            .append('\t').append(sum[2]).append('\n');
      }
    }
    return lines.toString();
  }

  /** How many tasks of a stage of Penstock have begun before the first one on their executor had ended. */
  public long coldTasks(String stage) {
    Object count = coldTasks.get(stage);
    return count == null ? 0 : ((Long) count).longValue();
  }

  /** Sets the target number of executors; those beyond it stay until they are sent away. */
  public boolean want(int executors) {
    return spark.requestTotalExecutors(executors, 0, (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty());
  }

  /** Lets an executor end what runs on it and leave; it is not replaced. */
  public boolean sendAway(String executor) {
    CoarseGrainedSchedulerBackend backend = (CoarseGrainedSchedulerBackend) spark.schedulerBackend();
    return backend.decommissionExecutor(executor,
        org.apache.spark.scheduler.ExecutorDecommissionInfo$.MODULE$.apply("Penstock needs it no more", scala.Option.empty()), false, false);
  }
}
