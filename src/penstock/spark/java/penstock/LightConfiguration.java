package penstock;

import java.lang.reflect.Field;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.mapred.JobConf;
import org.apache.spark.sql.SparkSession;

/**
 * Spark sends Hadoop's settings with every scan and every access to state: more than a thousand, each with the name
 * of the file it came from, compressed one by one, about 8 ms a time. The names serve for diagnosis only.
 */
public class LightConfiguration {
  /** Drops the names of the files; the settings stay. */
  public static void make(SparkSession session) throws Exception {
    Configuration settings = session.sparkContext().hadoopConfiguration();
    // Classes that add files of their own when they are first used: all settings would then be read again.
    new JobConf(false);
    new HdfsConfiguration(false);
    // Reads them, if they are not read yet.
    settings.size();
    Field sources = Configuration.class.getDeclaredField("updatingResource");
    sources.setAccessible(true);
    Map named = (Map) sources.get(settings);
    if (named != null) {
      named.clear();
    }
  }
}
