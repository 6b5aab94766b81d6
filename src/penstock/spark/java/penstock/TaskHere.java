package penstock;

import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.Dependency;
import org.apache.spark.NarrowDependency;
import org.apache.spark.Partition;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkEnv$;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.TaskKilledException;
import org.apache.spark.executor.TaskMetrics$;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.InputFileBlockHolder$;
import org.apache.spark.rdd.RDD;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.unsafe.Platform;
import scala.Function2;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map$;
import scala.math.BigDecimal$;

/** The only task of a job, run in this process while its caller waits: for rows so few that a job would cost more. */
final class TaskHere {
  // Far from the numbers that Spark gives to tasks: memory and locks are told apart by them.
  private static final AtomicLong NUMBERS = new AtomicLong(1L << 40);

  private TaskHere() {}

  /** Whether the rows come from one partition without an exchange before it, which would take a job of its own. */
  static boolean can(RDD rows) {
    return rows.getNumPartitions() == 1 && hasNoExchange(rows) && !rows.isBarrier();
  }

  private static boolean hasNoExchange(RDD rows) {
    Iterator dependencies = rows.dependencies().iterator();
    while (dependencies.hasNext()) {
      Dependency each = (Dependency) dependencies.next();
      if (!(each instanceof NarrowDependency) || !hasNoExchange(each.rdd())) {
        return false;
      }
    }
    return true;
  }

  /** What `work` makes of the rows, as a task of Spark's would: with memory, locks and settings of its own. */
  static Object run(RDD rows, Function2 work, Properties settings) {
    Own task = new Own(rows, work, settings);
    task.start();
    boolean interrupted = false;
    while (task.isAlive()) {
      try {
        task.join();
      } catch (InterruptedException problem) {
        interrupted = true;
        task.interrupt();
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return task.made();
  }

  /**
   * A thread for one task. Libraries keep things for each thread; in those of the Python bridge, a profile had a fifth of
   * its samples in the look-up of one of them, for every row of JSON, and none in new ones.
   */
  private static final class Own extends Thread {
    private final RDD rows;
    private final Function2 work;
    private final Properties settings;
    private Object made;
    private Throwable problem;

    Own(RDD rows, Function2 work, Properties settings) {
      super("penstock-task");
      setDaemon(true);
      this.rows = rows;
      this.work = work;
      this.settings = settings;
    }

    public void run() {
      try {
        made = here(rows, work, settings);
      } catch (Throwable thrown) {
        problem = thrown;
      }
    }

    Object made() {
      if (problem != null) {
        // As it is, checked or not.
        Platform.throwException(problem);
      }
      return made;
    }
  }

  private static Object here(RDD rows, Function2 work, Properties settings) {
    SparkEnv env = SparkEnv$.MODULE$.get();
    long number = NUMBERS.incrementAndGet();
    TaskMemoryManager memory = new TaskMemoryManager(env.memoryManager(), number);
    TaskContextImpl context = new Context(number, memory, settings, env);
    BlockManager blocks = env.blockManager();
    blocks.registerTask(number);
    InputFileBlockHolder$.MODULE$.initialize();
    TaskContext$.MODULE$.setTaskContext(context);
    try {
      return completed(rows, work, context);
    } finally {
      blocks.memoryStore().releaseUnrollMemoryForThisTask(MemoryMode.ON_HEAP, Long.MAX_VALUE);
      blocks.memoryStore().releaseUnrollMemoryForThisTask(MemoryMode.OFF_HEAP, Long.MAX_VALUE);
      TaskContext$.MODULE$.unset();
      InputFileBlockHolder$.MODULE$.unset();
      blocks.releaseAllLocksForTask(number);
      memory.cleanUpAllAllocatedMemory();
    }
  }

  private static Object completed(RDD rows, Function2 work, TaskContextImpl context) {
    Object made;
    try {
      Partition only = rows.partitions()[0];
      made = work.apply(context, rows.iterator(only, context));
    } catch (Throwable problem) {
      giveUp(context, problem);
      throw problem;
    }
    context.markTaskCompleted(Option.empty());
    return made;
  }

  /** State that was not committed is given up, memory is freed. What goes wrong there must not hide the problem. */
  private static void giveUp(TaskContextImpl context, Throwable problem) {
    try {
      context.markTaskFailed(problem);
    } catch (Throwable further) {
      problem.addSuppressed(further);
    }
    try {
      context.markTaskCompleted(Option.apply(problem));
    } catch (Throwable further) {
      problem.addSuppressed(further);
    }
  }

  /** Nobody kills it by its number; it ends where its thread is interrupted, as a query does that stops. */
  private static final class Context extends TaskContextImpl {
    private final Thread thread = Thread.currentThread();

    Context(long number, TaskMemoryManager memory, Properties settings, SparkEnv env) {
      super(
          0, 0, 0, number, 0, 1, memory, settings, env.metricsSystem(), TaskMetrics$.MODULE$.empty(),
          BigDecimal$.MODULE$.apply(1), (scala.collection.immutable.Map) Map$.MODULE$.empty());
    }

    public boolean isInterrupted() {
      return thread.isInterrupted() || super.isInterrupted();
    }

    public void killTaskIfInterrupted() {
      if (thread.isInterrupted()) {
        // By this name Spark knows that a query was stopped, also when it has come by way of Python.
        throw new TaskKilledException("java.lang.InterruptedException");
      }
      super.killTaskIfInterrupted();
    }
  }
}
