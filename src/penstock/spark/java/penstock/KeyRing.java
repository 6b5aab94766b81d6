package penstock;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.Arrays;
import java.util.Base64;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Keys by id, which of them is the current one, and from when each is used for pseudonyms. Neither it nor a key can be
 * serialized: what carries one by mistake cannot leave its JVM.
 */
public final class KeyRing {
  static final int KEY_BYTES = 32;
  static final String BARE_ID = "k1";
  private static final Pattern ID = Pattern.compile("[A-Za-z0-9_.-]{1,64}");
  private static final Pattern FIELD = Pattern.compile("current|keys|from");
  private static final byte[] PSEUDONYMS = "penstock pseudonyms 1".getBytes(StandardCharsets.UTF_8);

  /** One key: as it is for AES, and derived for pseudonyms, so that neither use tells of the other. */
  static final class Key {
    final String id;
    final byte[] header;
    final SecretKeySpec aes;
    final SecretKeySpec mac;

    Key(String id, byte[] bytes) throws Exception {
      this.id = id;
      byte[] name = id.getBytes(StandardCharsets.UTF_8);
      header = new byte[2 + name.length];
      header[0] = AesGcm.VERSION;
      header[1] = (byte) name.length;
      System.arraycopy(name, 0, header, 2, name.length);
      aes = new SecretKeySpec(bytes, "AES");
      Mac derive = Mac.getInstance("HmacSHA256");
      derive.init(new SecretKeySpec(bytes, "HmacSHA256"));
      mac = new SecretKeySpec(derive.doFinal(PSEUDONYMS), "HmacSHA256");
    }
  }

  private final TreeMap keys = new TreeMap();
  private final TreeMap since = new TreeMap();
  private final Key current;

  private KeyRing(JsonNode ring) {
    Iterator given = part(ring, "keys").fields();
    while (given.hasNext()) {
      Map.Entry entry = (Map.Entry) given.next();
      add((String) entry.getKey(), (JsonNode) entry.getValue());
    }
    if (keys.isEmpty()) {
      throw new KeyProblem("a ring must have at least one key under \"keys\"");
    }
    current = named(part(ring, "current"), "\"current\" must name one of the keys");
    if (ring.has("from") && !part(ring, "from").isObject()) {
      throw new KeyProblem("\"from\" must give moments to keys by their ids");
    }
    Iterator moments = part(ring, "from").fields();
    while (moments.hasNext()) {
      Map.Entry entry = (Map.Entry) moments.next();
      Key key = named(new TextNode((String) entry.getKey()), "\"from\" must name keys of the ring");
      if (since.put(micros(key.id, (JsonNode) entry.getValue()), key) != null) {
        throw new KeyProblem("\"from\" must not give two keys the same moment");
      }
    }
  }

  /** The ring in a text: {"current": id, "keys": {id: base64}, "from": {id: moment}}, or one key in base64. */
  static KeyRing parse(String text) {
    return new KeyRing(tree(text.trim()));
  }

  Key current() {
    return current;
  }

  /** Null where the id is unknown. */
  Key find(String id) {
    return (Key) keys.get(id);
  }

  boolean isTimed() {
    return !since.isEmpty();
  }

  /** The key of pseudonyms at a moment of event time; what is older than the first moment has the first key. */
  Key at(long micros) {
    Map.Entry found = since.floorEntry(Long.valueOf(micros));
    return (Key) (found == null ? since.firstEntry() : found).getValue();
  }

  public String toString() {
    return "KeyRing of " + keys.size() + " keys";
  }

  /** The compiler would take the result for the interface that JsonNode implements. */
  private static JsonNode part(JsonNode ring, String name) {
    return (JsonNode) ring.path(name);
  }

  private static JsonNode tree(String text) {
    ObjectMapper mapper = new ObjectMapper();
    mapper.enable(new JsonParser.Feature[] {JsonParser.Feature.STRICT_DUPLICATE_DETECTION});
    JsonNode ring = null;
    if (text.startsWith("{")) {
      try {
        ring = mapper.readTree(text);
      } catch (IOException ignored) {
        // Jackson quotes the text that it cannot read.
        throw new KeyProblem("must be a JSON object or one key of 32 bytes in base64, but is no JSON");
      }
    } else {
      ObjectNode bare = mapper.createObjectNode();
      bare.put("current", BARE_ID);
      bare.putObject("keys").put(BARE_ID, text);
      return bare;
    }
    Iterator names = ring.fieldNames();
    while (names.hasNext()) {
      if (!FIELD.matcher((String) names.next()).matches()) {
        throw new KeyProblem("a ring must have no other fields than \"current\", \"keys\" and \"from\"");
      }
    }
    return ring;
  }

  private void add(String id, JsonNode text) {
    if (!ID.matcher(id).matches()) {
      throw new KeyProblem("an id of a key must be 1 to 64 letters, digits, '_', '.' or '-'");
    }
    byte[] bytes;
    try {
      bytes = Base64.getDecoder().decode(text.asText());
    } catch (IllegalArgumentException ignored) {
      throw new KeyProblem("key " + id + " must be 32 bytes in base64, but is no base64");
    }
    if (bytes.length != KEY_BYTES) {
      throw new KeyProblem("key " + id + " must be 32 bytes in base64, but has " + bytes.length + " bytes");
    }
    Iterator others = keys.values().iterator();
    while (others.hasNext()) {
      Key other = (Key) others.next();
      if (Arrays.equals(other.aes.getEncoded(), bytes)) {
        throw new KeyProblem("keys " + other.id + " and " + id + " must differ, but are the same");
      }
    }
    try {
      keys.put(id, new Key(id, bytes));
    } catch (Exception unusable) {
      throw new KeyProblem("key " + id + ": this Java has no HmacSHA256");
    }
  }

  private Key named(JsonNode id, String rule) {
    Key found = id.isTextual() ? find(id.asText()) : null;
    if (found == null) {
      throw new KeyProblem(rule);
    }
    return found;
  }

  private static Long micros(String id, JsonNode moment) {
    try {
      Instant at = Instant.parse(moment.asText());
      return Long.valueOf(Math.addExact(Math.multiplyExact(at.getEpochSecond(), 1000000L), at.getNano() / 1000L));
    } catch (DateTimeException ignored) {
      throw new KeyProblem("\"from\" of key " + id + " must be a moment such as 2026-12-01T00:00:00Z");
    } catch (ArithmeticException ignored) {
      throw new KeyProblem("\"from\" of key " + id + " must be a moment such as 2026-12-01T00:00:00Z");
    }
  }
}
