package penstock;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashSet;

/**
 * A file with keys that nobody but its owner can read, who is the user of this process or root.
 *
 * Links are followed, as secrets are often mounted and rotated by one; a link too must be of such an owner, so that
 * nobody else chooses which file is read.
 */
final class KeyFile {
  private static final long LIMIT_BYTES = 65536;
  private static final LinkOption[] FOLLOW = new LinkOption[0];
  private static final LinkOption[] STAY = new LinkOption[] {LinkOption.NOFOLLOW_LINKS};

  static String read(String name) {
    try {
      Path path = Paths.get(name, new String[0]);
      Path target = path.toRealPath(FOLLOW);
      checkOwner(attributes(path, STAY));
      PosixFileAttributes before = attributes(target, STAY);
      check(target, before);
      String text = new String(Files.readAllBytes(target), StandardCharsets.UTF_8);
      PosixFileAttributes after = attributes(target, STAY);
      if (!after.fileKey().equals(before.fileKey()) || !after.permissions().equals(before.permissions())) {
        throw new KeyProblem("must not change while it is read: replace it by renaming another onto it");
      }
      return text;
    } catch (NoSuchFileException gone) {
      throw new KeyProblem("must be there in every process that needs it, but is not");
    } catch (UnsupportedOperationException strange) {
      throw new KeyProblem("must lie on a file system with owners and modes, and does not");
    } catch (IOException unreadable) {
      throw new KeyProblem("must be readable, but reading it gave " + unreadable.getClass().getSimpleName());
    }
  }

  private static PosixFileAttributes attributes(Path path, LinkOption[] options) throws IOException {
    return (PosixFileAttributes) Files.readAttributes(path, PosixFileAttributes.class, options);
  }

  private static void check(Path target, PosixFileAttributes found) throws IOException {
    if (!found.isRegularFile()) {
      throw new KeyProblem("must be a regular file, but is " + (found.isDirectory() ? "a folder" : "none"));
    }
    checkOwner(found);
    HashSet others = new HashSet(found.permissions());
    others.remove(PosixFilePermission.OWNER_READ);
    others.remove(PosixFilePermission.OWNER_WRITE);
    others.remove(PosixFilePermission.OWNER_EXECUTE);
    if (!others.isEmpty()) {
      String mode = PosixFilePermissions.toString(found.permissions());
      throw new KeyProblem("must be open to its owner alone, but its mode is " + mode + ": chmod 600 " + target);
    }
    if (found.size() > LIMIT_BYTES) {
      throw new KeyProblem("must have at most " + LIMIT_BYTES + " bytes, but has " + found.size());
    }
  }

  private static void checkOwner(PosixFileAttributes found) throws IOException {
    String owner = found.owner().getName();
    if (!owner.equals(myself()) && !owner.equals("root")) {
      String what = found.isSymbolicLink() ? "the link" : "it";
      throw new KeyProblem("must belong to " + myself() + " or root, but " + what + " is " + owner + "'s: chown it");
    }
  }

  /** The user as files name him: one without an entry in the list of users has a number for a name. */
  private static String myself() throws IOException {
    Path process = Paths.get("/proc/self", new String[0]);
    return Files.exists(process, FOLLOW)
        ? Files.getOwner(process, FOLLOW).getName()
        : System.getProperty("user.name");
  }
}
