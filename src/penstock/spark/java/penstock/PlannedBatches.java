package penstock;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.streaming.checkpointing.CommitMetadata$;
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeq;
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeq$;
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadata;
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadata$;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution;
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution$;
import org.apache.spark.sql.execution.streaming.runtime.LongOffset$;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.WatermarkPropagator;
import org.apache.spark.sql.execution.streaming.runtime.WatermarkPropagator$;
import org.apache.spark.sql.execution.streaming.runtime.WatermarkTracker;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;
import scala.runtime.BoxedUnit;

/**
 * The batches of a query with state after its first, over the plan that Spark made for that one.
 *
 * Spark analyses, optimizes and plans every batch of a stream anew. Where that comes out the same whatever the
 * files, it is done once: a batch then puts its files below the plan, and Spark's own rules put in its number, its
 * watermark and the place of its state. Offsets and commits are written as the query would write them, so that
 * Spark can go on from the checkpoint at any time. The query itself must have stopped before the first batch.
 */
public class PlannedBatches {
  private static final int RETAINED_EVERY = 10;
  private static final String TASKS = "spark.sql.shuffle.partitions";
  private static final String CODE = "spark.sql.codegen.factoryMode";

  private final MicroBatchExecution query;
  private final SparkSession session;
  private final SparkPlan plan;
  private final List scans;
  private final UUID run = UUID.randomUUID();
  private final WatermarkPropagator watermarks;
  private IncrementalExecution last;
  private long grant;

  private PlannedBatches(MicroBatchExecution query, List scans, long grant) {
    this.query = query;
    this.session = query.lastExecution().sparkSession();
    SparkPlan watched = query.lastExecution().sparkPlan();
    SparkPlan unwatched = inSession(watched);
    this.plan = parsingBytes(unwatched);
    this.scans = scans;
    this.grant = grant;
    // The query's own has a watermark for the next batch as soon as it has looked whether there is one. What is not
    // watched has one watermark throughout; Spark would look for the nodes that are gone.
    this.watermarks = propagator(unwatched != watched);
  }

  private PlannedBatches(PlannedBatches before, SparkPlan plan, int slots) {
    this.query = before.query;
    this.session = before.session;
    this.plan = plan;
    this.scans = before.scans;
    this.grant = before.grant;
    // The one before may know of a batch that did not come, as the division took its number.
    this.watermarks = propagator(before.watermarks instanceof OneWatermark);
    this.last = before.last;
    session.sessionState().conf().setConfString(TASKS, Integer.toString(slots));
    Tuple2 division = (Tuple2) query.offsetLog().getLatest().get();
    OffsetSeqMetadata divided = (OffsetSeqMetadata) ((OffsetSeq) division._2()).metadataOpt().get();
    if (!Integer.toString(slots).equals(divided.conf().apply(TASKS))) {
      throw new IllegalStateException("the state of query " + query.name() + " must have been divided for " + slots
          + " slots, but its last batch says " + divided.conf().apply(TASKS));
    }
    this.last = new Batch(this, ((Long) division._1()).longValue(), divided);
  }

  private WatermarkPropagator propagator(boolean one) {
    return one ? new OneWatermark() : WatermarkPropagator$.MODULE$.apply(session.sessionState().conf());
  }

  /** What runs the batches after the query's last one; null where Spark must plan each by itself. While held. */
  public static PlannedBatches after(MicroBatchExecution query, LogicalPlan analyzed) {
    IncrementalExecution last = query.lastExecution();
    SQLConf settings = last.sparkSession().sessionState().conf();
    // Other forms of its logs would have to tell more than is known here.
    if (!PlannedTurn.isTimeless(analyzed) || !(last.offsetSeqMetadata() instanceof OffsetSeqMetadata)
        || settings.stateStoreCheckpointFormatVersion() != 1 || settings.enableStreamingSinkEvolution()) {
      return null;
    }
    List scans = new ArrayList();
    if (!PlannedTurn.isMadeOf(PlannedTurn.STREAM, last.sparkPlan()) || !findScans(last.sparkPlan(), scans)
        || scans.size() != query.sources().size()) {
      return null;
    }
    long grant = ((GrantedFiles) scans.get(0)).book().latest();
    return new PlannedBatches(query, scans, grant);
  }

  /** The files of all scans; false if one of them is not granted by a book. */
  private static boolean findScans(SparkPlan plan, List found) {
    if (plan instanceof FileSourceScanExec) {
      FileIndex files = ((FileSourceScanExec) plan).relation().location();
      if (!(files instanceof GrantedFiles) || ((GrantedFiles) files).book() == null) {
        return false;
      }
      found.add(files);
    }
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      if (!findScans((SparkPlan) children.next(), found)) {
        return false;
      }
    }
    return true;
  }

  /** Nodes belong to the session that is active when they are made. */
  private SparkPlan inSession(SparkPlan watched) {
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      return KeptPlan.unwatched(watched);
    } finally {
      PlannedTurn.restore(before);
    }
  }

  private SparkPlan parsingBytes(SparkPlan unwatched) {
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      return JsonOfBytes.within(unwatched);
    } finally {
      PlannedTurn.restore(before);
    }
  }

  /** Whether whole stages can read every row, so that only what state keeps is up to other code. */
  public boolean canBeWhole() {
    return KeptPlan.canBeWhole(plan);
  }

  /** The query has stopped: batches go on after the last that it has committed. */
  public void goOn() {
    last = query.lastExecution();
    if (query.commitLog().get(last.currentBatchId()).isEmpty()) {
      throw new IllegalStateException(
          "query " + query.name() + " must have committed batch " + last.currentBatchId() + ", but has not");
    }
  }

  /**
   * What goes on once the state was divided for so many slots, which Spark writes down as a batch of its own; null where
   * another number of slots takes another plan. Only after this one has stopped: state is read anew, for a run of its own.
   */
  public PlannedBatches divided(int slots) {
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      SparkPlan changed = KeptPlan.inTasks(plan, last.numStateStores(), slots);
      return changed == null ? null : new PlannedBatches(this, changed, slots);
    } finally {
      PlannedTurn.restore(before);
    }
  }

  /** Begins the next batch, of all that was granted since the last; its number. */
  public long begin() {
    TurnThread.name(session);
    OffsetSeqMetadata before = (OffsetSeqMetadata) last.offsetSeqMetadata();
    OffsetSeqMetadata now = OffsetSeqMetadata$.MODULE$.apply(
        tracker().currentWatermark(), System.currentTimeMillis(), before.conf());
    long batch = last.currentBatchId() + 1;
    long latest = grant;
    for (int i = 0; i < scans.size(); i++) {
      latest = Math.max(latest, ((GrantedFiles) scans.get(i)).book().latest());
    }
    Seq offsets = (Seq) Nil$.MODULE$;
    for (int i = 0; i < scans.size(); i++) {
      GrantedFiles files = (GrantedFiles) scans.get(i);
      files.grantLines(latest == grant ? "" : files.book().lines(grant + 1, latest));
      offsets = (Seq) offsets.prepended(Option.apply(LongOffset$.MODULE$.apply(latest)));
    }
    if (!query.offsetLog().add(batch, OffsetSeq$.MODULE$.apply(offsets, Option.apply(now)))) {
      throw new IllegalStateException("batch " + batch + " of query " + query.name() + " has begun before");
    }
    grant = latest;
    last = new Batch(this, batch, now);
    return batch;
  }

  /**
   * Whole stages that read rows of the batch that has begun are compiled, though its session would have all code
   * interpreted. Whether they read every row: Spark leaves out what it cannot compile, or is told not to.
   */
  public boolean makeWhole() {
    SQLConf settings = session.sessionState().conf();
    String before = settings.getConfString(CODE);
    settings.setConfString(CODE, "FALLBACK");
    Option active = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      SparkPlan whole = last.executedPlan();
      ((Batch) last).ready = KeptPlan.wholeWhereRead(whole);
      return KeptPlan.isWhole(whole);
    } finally {
      settings.setConfString(CODE, before);
      PlannedTurn.restore(active);
    }
  }

  /** Runs the batch and writes its rows into a file, as BatchRows does. */
  public void write(String file, boolean here) {
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      // Tasks read their settings where this puts them.
      SQLExecution$.MODULE$.withSQLConfPropagated(session, new Write(last, file, here));
    } finally {
      PlannedTurn.restore(before);
    }
  }

  /** The rows of the batch as a frame: whoever reads them runs it, once. */
  public Dataset frame() {
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      return session.internalCreateDataFrame(last.toRdd(), last.analyzed().schema(), false);
    } finally {
      PlannedTurn.restore(before);
    }
  }

  /** What the batch was is kept: Spark would go on with the next one. */
  public void commit() {
    long batch = last.currentBatchId();
    if (!keptState(last.executedPlan())) {
      throw new IllegalStateException("batch " + batch + " of query " + query.name()
          + " must be read to its end by one action, which keeps its state, but was not");
    }
    if (!query.commitLog().add(batch, CommitMetadata$.MODULE$.apply(tracker().currentWatermark()))) {
      throw new IllegalStateException("batch " + batch + " of query " + query.name() + " was committed before");
    }
    watermarks.purge(batch - 1);
    if (batch % RETAINED_EVERY == 0) {
      int retained = session.sessionState().conf().minBatchesToRetain();
      query.offsetLog().purge(batch - retained);
      query.commitLog().purge(batch - retained);
    }
  }

  /** Whether every operator with state has committed it: until then it has taken no time. */
  private static boolean keptState(SparkPlan plan) {
    if (plan instanceof StateStoreWriter && ((SQLMetric) plan.metrics().apply("commitTimeMs")).isZero()) {
      return false;
    }
    Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      if (!keptState((SparkPlan) children.next())) {
        return false;
      }
    }
    return true;
  }

  /** Its state is no longer kept in memory for it. */
  public void stop() {
    session.sessionState().streamingQueryManager().stateStoreCoordinator().deactivateInstances(run);
  }

  public IncrementalExecution execution() {
    return last;
  }

  public WatermarkTracker tracker() {
    return query.watermarkTracker();
  }

  /** A batch whose plan is there before anything is analysed. */
  private static final class Batch extends IncrementalExecution {
    private final SparkPlan planned;
    private SparkPlan ready;

    Batch(PlannedBatches all, long number, OffsetSeqMetadata metadata) {
      super(
          all.session, all.last.logical(), all.last.outputMode(), all.last.checkpointLocation(), all.query.id(),
          all.run, number, Option.apply(all.last.offsetSeqMetadata()), metadata, all.watermarks, false,
          all.last.currentStateStoreCkptId(), all.last.stateSchemaMetadatas(),
          IncrementalExecution$.MODULE$.$lessinit$greater$default$14(), false, false);
      this.planned = all.plan;
    }

    public SparkPlan sparkPlan() {
      return planned;
    }

    public SparkPlan executedPlan() {
      return ready == null ? super.executedPlan() : ready;
    }

    public void assertOptimized() {}
  }

  private static final class Write extends AbstractFunction0 {
    private final IncrementalExecution execution;
    private final String file;
    private final boolean here;

    Write(IncrementalExecution execution, String file, boolean here) {
      this.execution = execution;
      this.file = file;
      this.here = here;
    }

    public Object apply() {
      try {
        // Not toRdd(), which also describes the plan for pages that nobody looks at.
        RDD rows = execution.executedPlan().execute();
        BatchRows.write(execution.sparkSession(), rows, execution.analyzed().schema(), file, here);
      } catch (IOException problem) {
        throw new UncheckedIOException(problem);
      }
      return BoxedUnit.UNIT;
    }
  }
}
