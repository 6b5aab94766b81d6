package penstock;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The policies of a file of JSON lines, kept by each JVM and read anew when the file is another. A file that cannot
 * be read leaves nothing that is allowed: whoever asks gets an exception.
 */
public class PolicyFile {
  public static final int DAY = 24 * 60;

  private static final ConcurrentHashMap FILES = new ConcurrentHashMap();
  private static final List FIELDS = Arrays.asList(new String[] {"subject", "consumer", "purposes", "from", "to"});
  private static final ObjectMapper JSON = new ObjectMapper()
      .configure(JsonParser.Feature.STRICT_DUPLICATE_DETECTION, true)
      .configure(DeserializationFeature.FAIL_ON_TRAILING_TOKENS, true);
  // Two files written so soon after each other may have the same times.
  private static final long UNSETTLED_MILLIS = 100;

  private final Path path;
  private String identity;
  private volatile long lookedAt;
  private volatile HashMap allowed;

  private PolicyFile(Path path) {
    this.path = path;
  }

  public static PolicyFile at(String path) {
    PolicyFile made = new PolicyFile(Paths.get(path, new String[0]));
    Object before = FILES.putIfAbsent(path, made);
    return before == null ? made : (PolicyFile) before;
  }

  /** What a consumer wants to do, as a key of the map that `allowed` gives. */
  public static String use(String consumer, String purpose) {
    return consumer + '\u0000' + purpose;
  }

  /** By use, then by subject: the intervals allowed, as minutes of the day. They are not older than `refresh`. */
  public HashMap allowed(long refreshNanos) {
    HashMap now = allowed;
    return now == null || System.nanoTime() - lookedAt >= refreshNanos ? looked(refreshNanos) : now;
  }

  private synchronized HashMap looked(long refreshNanos) {
    long began = System.nanoTime();
    if (allowed == null || began - lookedAt >= refreshNanos) {
      try {
        look();
      } catch (Exception failure) {
        allowed = null;
        throw new IllegalStateException(
            "the policy table " + path + " must be readable, but " + failure + ": nobody is allowed");
      }
      lookedAt = began;
    }
    return allowed;
  }

  private void look() throws IOException {
    // Before the content is read: should the file be replaced in between, the next look finds another one.
    Map attributes = Files.readAttributes(path, "unix:ino,size,lastModifiedTime,ctime", new LinkOption[0]);
    String found = attributes.get("ino") + " " + attributes.get("size") + " " + attributes.get("lastModifiedTime")
        + " " + attributes.get("ctime");
    if (allowed != null && found.equals(identity)) {
      return;
    }
    allowed = read();
    long age = System.currentTimeMillis() - ((FileTime) attributes.get("lastModifiedTime")).toMillis();
    identity = age > UNSETTLED_MILLIS ? found : null;
  }

  private HashMap read() throws IOException {
    String text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(Files.readAllBytes(path))).toString();
    String[] lines = text.split("\n");
    HashMap made = new HashMap();
    for (int i = 0; i < lines.length; i++) {
      if (lines[i].trim().length() > 0) {
        try {
          add(made, (JsonNode) JSON.readTree(lines[i]));
        } catch (JsonProcessingException broken) {
          throw new IOException("line " + (i + 1) + ": " + broken.getOriginalMessage());
        } catch (RuntimeException wrong) {
          throw new IOException("line " + (i + 1) + ": " + wrong.getMessage());
        }
      }
    }
    return made;
  }

  private static void add(HashMap made, JsonNode policy) {
    check(policy.isObject(), "a policy must be an object");
    Iterator names = policy.fieldNames();
    while (names.hasNext()) {
      Object name = names.next();
      check(FIELDS.contains(name), "a policy has no field " + name);
    }
    int from = minute((JsonNode) policy.get("from"), 0);
    int[] intervals = intervals(from, minute((JsonNode) policy.get("to"), DAY));
    JsonNode purposes = (JsonNode) policy.get("purposes");
    check(purposes != null && purposes.isArray(), "purposes must be a list");
    for (int i = 0; i < purposes.size(); i++) {
      String use = use(text((JsonNode) policy.get("consumer")), text((JsonNode) purposes.get(i)));
      HashMap subjects = (HashMap) made.get(use);
      if (subjects == null) {
        subjects = new HashMap();
        made.put(use, subjects);
      }
      String subject = text((JsonNode) policy.get("subject"));
      subjects.put(subject, joined((int[]) subjects.get(subject), intervals));
    }
  }

  private static int[] intervals(int from, int to) {
    check(from != to, "from and to must differ");
    // Over midnight it is two of them.
    return from < to ? new int[] {from, to} : new int[] {from, DAY, 0, to};
  }

  private static int[] joined(int[] some, int[] others) {
    if (some == null) {
      return others;
    }
    int[] all = Arrays.copyOf(some, some.length + others.length);
    System.arraycopy(others, 0, all, some.length, others.length);
    return all;
  }

  private static int minute(JsonNode given, int otherwise) {
    if (given == null) {
      return otherwise;
    }
    String at = text(given);
    check(at.matches("([01][0-9]|2[0-3]):[0-5][0-9]"), "a time of day must be HH:MM");
    return Integer.parseInt(at.substring(0, 2)) * 60 + Integer.parseInt(at.substring(3));
  }

  private static String text(JsonNode given) {
    check(given != null && given.isTextual() && given.textValue().length() > 0, "names and times must be texts");
    return given.textValue();
  }

  private static void check(boolean holds, String rule) {
    if (!holds) {
      throw new IllegalArgumentException(rule);
    }
  }
}
