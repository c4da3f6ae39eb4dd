/**
 * What a sandbox shows of the file system, as arguments of bubblewrap: nothing but what is mounted here. System folders
 * are read-only, the given folders are as they are given, and in them what `ProtectedPaths` protects is read-only or
 * hidden. Owns no process. Spec: SB-2..SB-5 in specs/sandbox.md.
 */
import { lstatSync, opendirSync, readlinkSync, realpathSync, type Dirent } from "node:fs"
import * as path from "node:path"
import { isWithin } from "../config/TextFile.ts"
import { guardsOf } from "../permission/ProtectedPaths.ts"

/** What a folder or file is for the sandbox. */
export interface Mount {
  /** Absolute, without symbolic links. */
  readonly path: string
  readonly access: "write" | "read" | "hidden"
}

/** Folders of the system that programs need. */
const systemFolders = words("/usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix/store /gnu/store")

/** Files of `/etc` that programs need; the others may hold secrets. */
const settings = words(
  "alternatives ca-certificates ca-certificates.conf crypto-policies debian_version default/locale fonts group host.conf",
  "hosts ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf localtime mime.types nsswitch.conf os-release",
  "passwd pki/ca-trust pki/tls/cert.pem pki/tls/certs protocols resolv.conf services ssl/cert.pem ssl/certs",
  "ssl/openssl.cnf terminfo timezone java-17-openjdk java-21-openjdk"
).map((name) => `/etc/${name}`)

function words(...lines: ReadonlyArray<string>): ReadonlyArray<string> {
  return lines.flatMap((line) => line.split(" "))
}

/**
 * What is looked at for protected names, the nearest folders first: a command must not wait for a large project, and the
 * event loop not for a hostile one.
 */
const maximumFolders = 256
const maximumEntries = 20_000

const attempt = <A>(look: () => A): A | undefined => {
  try {
    return look()
  } catch {
    return undefined
  }
}

/** The path without symbolic links; undefined when there is nothing. */
export const real = (name: string): string | undefined => attempt(() => realpathSync(name))

/** The next entries of a folder, at most so many. */
const entriesOf = (folder: string, maximum: number): ReadonlyArray<Dirent> =>
  attempt(() => {
    const opened = opendirSync(folder, { bufferSize: 256 })
    try {
      const entries: Array<Dirent> = []
      for (let entry = opened.readSync(); entry !== null && entries.length < maximum; entry = opened.readSync()) {
        entries.push(entry)
      }
      return entries
    } finally {
      opened.closeSync()
    }
  }) ?? []

/** What of a folder is protected: as `write` or `edit` would ask for it. Links count as what they lead to. */
const protectedIn = (root: string): ReadonlyArray<Mount> => {
  const found: Array<Mount> = []
  const folders = [root]
  let left = maximumEntries
  for (let at = 0; at < Math.min(folders.length, maximumFolders); at++) {
    const folder = folders[at] ?? root
    const entries = entriesOf(folder, left)
    left -= entries.length
    for (const entry of entries) {
      const full = path.join(folder, entry.name)
      const access = guardsOf("read", entry.name).length > 0 ? "hidden" : "read"
      if (access === "hidden" || guardsOf("edit", entry.name).length > 0) {
        const target = entry.isSymbolicLink() ? real(full) : full
        if (target !== undefined && (target === full || isWithin(root, target))) found.push({ path: target, access })
      } else if (entry.isDirectory() && entry.name !== "node_modules") {
        folders.push(full)
      }
    }
  }
  return found
}

/** A later one of the same path counts; those above come first, so that what lies below is mounted over them. */
const ordered = (mounts: ReadonlyArray<Mount>): ReadonlyArray<Mount> =>
  [...new Map(mounts.map((mount) => [mount.path, mount])).values()].toSorted(
    (a, b) => a.path.split("/").length - b.path.split("/").length
  )

const isFolder = (name: string) => attempt(() => lstatSync(name).isDirectory()) === true

const argumentsOf = ({ access, path: name }: Mount): ReadonlyArray<string> => {
  if (access === "write") return ["--bind", name, name]
  if (access === "read") return ["--ro-bind", name, name]
  // A folder that can be passed through, for a given one below it, and a device that may not be opened.
  return isFolder(name) ? ["--perms", "0111", "--tmpfs", name] : ["--ro-bind", "/dev/null", name]
}

/** Read-only at last: until then, what lies below is mounted there. */
const closing = (mounts: ReadonlyArray<Mount>): ReadonlyArray<string> =>
  mounts
    .filter(({ access, path: name }) => access === "hidden" && isFolder(name))
    .flatMap(({ path: name }) => ["--remount-ro", name])

const systemArguments = (): ReadonlyArray<string> =>
  systemFolders.flatMap((name) => {
    const stats = attempt(() => lstatSync(name))
    if (stats === undefined) return []
    return stats.isSymbolicLink() ? ["--symlink", readlinkSync(name), name] : ["--ro-bind", name, name]
  })

/** Where programs keep what nobody needs afterwards: gone with the sandbox. */
const privateFolders = (home: string, bytes: number): ReadonlyArray<string> => {
  const temporary = (name: string, mode: string) => ["--perms", mode, "--size", String(bytes), "--tmpfs", name]
  return [
    // Written by the system's administrator without any capability: the kernel's settings are theirs by number.
    ...words("--proc /proc --remount-ro /proc --dev /dev"),
    ...temporary("/dev/shm", "1777"),
    ...words("--remount-ro /dev"),
    ...temporary("/tmp", "1777"),
    ...words("--dir /var --symlink ../tmp /var/tmp --dir /run"),
    ...temporary(home, "0700")
  ]
}

const rootName = (name: string): string => name.split("/")[1] ?? ""

/** A world's names lead there from `/`, but for those that something else has. */
const worldArguments = (world: string, mounted: ReadonlyArray<string>): ReadonlyArray<string> => {
  const taken = new Set([...systemFolders, "/etc", "/proc", "/dev", "/tmp", "/var", "/run", ...mounted].map(rootName))
  return entriesOf(world, maximumFolders)
    .filter(({ name }) => !taken.has(name))
    .flatMap(({ name }) => ["--symlink", path.join(world, name), `/${name}`])
}

/** What the sandbox is made from. All paths are absolute and without symbolic links. */
export interface Shown {
  readonly home: string
  /** Folders that are as they are given. What lies in them and is protected is not, unless it is given itself. */
  readonly given: ReadonlyArray<Mount>
  /** What is hidden wherever it is: this runtime's own files. */
  readonly hidden: ReadonlyArray<string>
  /** Bytes that each private folder may hold. */
  readonly bytes: number
  /** The folder that is the whole file system of the program, one of the given ones. */
  readonly world?: string | undefined
}

/** The arguments for all that is shown. Looks at the folders as they are now. */
export const mountArguments = ({ bytes, given, hidden, home, world }: Shown): ReadonlyArray<string> => {
  const own = new Set(given.map((mount) => mount.path))
  const guarded = given.flatMap((mount) => protectedIn(mount.path)).filter((mount) => !own.has(mount.path))
  const within = hidden.flatMap((name) => {
    const found = real(name)
    return found !== undefined && given.some((mount) => isWithin(mount.path, found)) ? [found] : []
  })
  const mounts = ordered([
    ...guarded,
    ...given,
    ...within.filter((name) => !own.has(name)).map((name): Mount => ({ path: name, access: "hidden" }))
  ])
  return [
    ...systemArguments(),
    ...settings.flatMap((name) => ["--ro-bind-try", name, name]),
    ...privateFolders(home, bytes),
    ...mounts.flatMap(argumentsOf),
    ...closing(mounts),
    ...(world === undefined ? [] : worldArguments(world, [home, ...mounts.map((mount) => mount.path)])),
    "--remount-ro",
    "/"
  ]
}
