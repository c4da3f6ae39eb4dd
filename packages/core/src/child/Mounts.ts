/**
 * Computes the bubblewrap arguments that define a sandbox's file system: only what is mounted here is visible. System
 * folders are read-only, given folders have the given access, and inside them what `ProtectedPaths` protects is
 * read-only or hidden. Starts no process. Spec: SB-2..SB-5, SB-18 in specs/security.md.
 */
import { type Dirent, lstatSync, opendirSync, readFileSync, readlinkSync, realpathSync } from "node:fs"
import * as path from "node:path"
import { guardsOf } from "../permission/ProtectedPaths.ts"
import { isWithin } from "../support/TextFile.ts"

// Checks what a sandbox mounted before its program runs: another sandbox may replace a folder by a link while `bwrap`
// resolves paths.

/** A line of the kernel's table of mounts: what is mounted (a path of a file system) and where, as the kernel writes them. */
type Line = { readonly device: string; readonly root: string; readonly point: string; readonly isReadOnly: boolean }

/** A mount that a sandbox is meant to have: a path of the host without links, where it is, and whether it is read-only. */
export interface Meant {
  readonly source: string
  readonly point: string
  readonly isReadOnly: boolean
}

export const parse = (table: string): ReadonlyArray<Line> =>
  table.split("\n").flatMap((text): ReadonlyArray<Line> => {
    const [, , device, root, point, options] = text.split(" ")
    return device === undefined || root === undefined || point === undefined || options === undefined
      ? []
      : [{ device, root, point, isReadOnly: options.split(",").includes("ro") }]
  })

/** The mounts that a process sees; undefined once it has ended. */
export const tableOf = (pid: number | "self"): ReadonlyArray<Line> | undefined => {
  try {
    return parse(readFileSync(`/proc/${pid}/mountinfo`, "utf8"))
  } catch {
    return undefined
  }
}

/** A path as the kernel writes it in its table. */
const written = (name: string): string =>
  name.replaceAll(/[ \t\n\\]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`)

/** Where a path of the host, as the kernel writes it, is in its file system. */
const placeIn = (host: ReadonlyArray<Line>, name: string): Omit<Line, "point" | "isReadOnly"> | undefined => {
  const [mount] = host
    .filter(({ point }) => isWithin(point, name))
    .toSorted((a, b) => a.point.length - b.point.length)
    .slice(-1)
  if (mount === undefined) return undefined
  const rest = mount.point === "/" ? name : name.slice(mount.point.length)
  return { device: mount.device, root: mount.root === "/" ? rest || "/" : `${mount.root}${rest === "/" ? "" : rest}` }
}

const keyOf = ({ device, point, root }: Omit<Line, "isReadOnly">) => `${device} ${root} ${point}`

/** What the kernel adds to the place of a mounted file or folder that was removed or replaced. */
const removed = "//deleted"

/**
 * The first mount of the host's files that the sandbox has and is not meant to have, or that can be written against its meaning.
 * File systems that the sandbox made itself are private. A mount brings the host's mounts below it. A read-only file outside of
 * the writable folders may have been replaced meanwhile, for example by an upgrade of the system: the sandbox has the older one.
 */
export const strayIn = (table: ReadonlyArray<Line>, host: ReadonlyArray<Line>, meant: ReadonlyArray<Meant>) => {
  const devices = new Set(host.map(({ device }) => device))
  /** By mount, whether it has to be read-only. */
  const allowed = new Map<string, boolean>()
  const allow = (line: Omit<Line, "isReadOnly">, isReadOnly: boolean) => {
    const key = keyOf(line)
    allowed.set(key, isReadOnly || allowed.get(key) === true)
  }
  const writable = meant.filter(({ isReadOnly }) => !isReadOnly).map(({ source }) => source)
  for (const { isReadOnly, point, source } of meant) {
    const [from, to] = [written(source), written(point)]
    const place = placeIn(host, from)
    if (place !== undefined) {
      allow({ ...place, point: to }, isReadOnly)
      if (isReadOnly && !writable.some((folder) => isWithin(folder, source))) {
        allow({ ...place, root: `${place.root}${removed}`, point: to }, true)
      }
    }
    for (const below of host) {
      if (below.point !== from && isWithin(from, below.point)) {
        allow({ ...below, point: `${to}${below.point.slice(from.length)}` }, false)
      }
    }
  }
  return table.find((line) => {
    if (!devices.has(line.device)) return false
    const mustBeReadOnly = allowed.get(keyOf(line))
    return mustBeReadOnly === undefined || (mustBeReadOnly && !line.isReadOnly)
  })?.point
}

/** A folder or file and its access in the sandbox. */
export interface Mount {
  /** Absolute, without symbolic links. */
  readonly path: string
  readonly access: "write" | "read" | "hidden"
}

const systemFolders = words("/usr /bin /sbin /lib /lib32 /lib64 /libx32 /opt /nix/store /gnu/store")

/** Files of `/etc` that programs need; others may hold secrets. */
const settings = words(
  "alternatives ca-certificates ca-certificates.conf crypto-policies debian_version default/locale fonts group host.conf",
  "hosts ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf localtime mime.types nsswitch.conf os-release",
  "passwd pki/ca-trust pki/tls/cert.pem pki/tls/certs protocols resolv.conf services ssl/cert.pem ssl/certs",
  "ssl/openssl.cnf terminfo timezone java-17-openjdk java-21-openjdk"
).map((name) => `/etc/${name}`)

function words(...lines: ReadonlyArray<string>): ReadonlyArray<string> {
  return lines.flatMap((line) => line.split(" "))
}

/** Bounds of the scan for protected names, nearest folders first: a large project must not delay a command. */
const maximumFolders = 256
const maximumEntries = 20_000

const attempt = <A>(look: () => A): A | undefined => {
  try {
    return look()
  } catch {
    return undefined
  }
}

/** The path with symbolic links resolved; undefined if it does not exist. */
export const real = (name: string): string | undefined => attempt(() => realpathSync(name))

/** The first entries of a folder, at most `maximum`. */
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

/** How the sandbox shows a protected name; undefined for any other name. */
const accessOf = (name: string): "hidden" | "read" | undefined => {
  if (guardsOf("read", name).length > 0) return "hidden"
  return guardsOf("edit", name).length > 0 ? "read" : undefined
}

/** The mount that protects a path, if it exists. A link counts as its target. */
const guardAt = (root: string, full: string): ReadonlyArray<Mount> => {
  const access = accessOf(path.basename(full))
  const stats = attempt(() => lstatSync(full))
  if (access === undefined || stats === undefined) return []
  const target = stats.isSymbolicLink() ? real(full) : full
  return target !== undefined && (target === full || isWithin(root, target)) ? [{ path: target, access }] : []
}

/** The protected paths below a folder, nearest first. */
const lookBelow = (root: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  const folders = [root]
  let left = maximumEntries
  for (let at = 0; at < Math.min(folders.length, maximumFolders); at++) {
    const folder = folders[at] ?? root
    const entries = entriesOf(folder, left)
    left -= entries.length
    for (const entry of entries) {
      const full = path.join(folder, entry.name)
      if (accessOf(entry.name) !== undefined) found.push(full)
      else if (entry.isDirectory() && entry.name !== "node_modules") folders.push(full)
    }
  }
  return found
}

/** The paths that earlier scans found, by folder: a command cannot hide them from the scan by adding folders. */
const known = new Map<string, ReadonlyArray<string>>()
const maximumKnown = { roots: 64, paths: 1_000 }

/** The paths below a folder that `write`, `edit` or `read` would ask about. */
const protectedIn = (root: string): ReadonlyArray<Mount> => {
  const mounts = new Map(
    [...(known.get(root) ?? []), ...lookBelow(root)].map((full) => [full, guardAt(root, full)] as const)
  )
  const found = [...mounts].filter(([, guards]) => guards.length > 0)
  known.delete(root)
  known.set(
    root,
    found.slice(0, maximumKnown.paths).map(([full]) => full)
  )
  const [oldest] = known.keys()
  if (known.size > maximumKnown.roots && oldest !== undefined) known.delete(oldest)
  return found.flatMap(([, guards]) => guards)
}

const foldersBetween = (root: string, name: string): ReadonlyArray<string> => {
  const folders: Array<string> = []
  for (let at = path.dirname(name); at !== root && isWithin(root, at); at = path.dirname(at)) folders.push(at)
  return folders
}

/** Mounts the parent folders of protected paths over themselves: a mount point cannot be renamed. */
const pinned = (given: ReadonlyArray<Mount>, guarded: ReadonlyArray<Mount>): ReadonlyArray<Mount> =>
  given.flatMap(({ access, path: root }) => {
    const inner = given.filter((mount) => mount.path !== root && isWithin(root, mount.path))
    return guarded
      .filter((mount) => isWithin(root, mount.path) && !inner.some((each) => isWithin(each.path, mount.path)))
      .flatMap((mount) => foldersBetween(root, mount.path))
      .map((name): Mount => ({ path: name, access }))
  })

/** Sorts mounts parents first, so that children are mounted over them. The last mount of a path wins. */
const ordered = (mounts: ReadonlyArray<Mount>): ReadonlyArray<Mount> =>
  [...new Map(mounts.map((mount) => [mount.path, mount])).values()].toSorted(
    (a, b) => a.path.split("/").length - b.path.split("/").length
  )

const isFolder = (name: string) => attempt(() => lstatSync(name).isDirectory()) === true

const argumentsOf = ({ access, path: name }: Mount): ReadonlyArray<string> => {
  if (access === "write") return ["--bind", name, name]
  if (access === "read") return ["--ro-bind", name, name]
  // A hidden folder can be traversed, because a given folder may lie below it; a hidden file becomes a device that
  // cannot be opened.
  return isFolder(name) ? ["--perms", "0111", "--tmpfs", name] : ["--ro-bind", "/dev/null", name]
}

/** Makes hidden folders read-only, after everything below them is mounted. */
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

/** Temporary folders that disappear with the sandbox. */
const privateFolders = (home: string, bytes: number): ReadonlyArray<string> => {
  const temporary = (name: string, mode: string) => ["--perms", mode, "--size", String(bytes), "--tmpfs", name]
  return [
    // Root can write kernel settings in /proc even without a capability, because uid 0 owns them: so /proc is
    // read-only.
    ...words("--proc /proc --remount-ro /proc --dev /dev"),
    ...temporary("/dev/shm", "1777"),
    ...words("--remount-ro /dev"),
    ...temporary("/tmp", "1777"),
    ...words("--dir /var --symlink ../tmp /var/tmp --dir /run"),
    ...temporary(home, "0700")
  ]
}

const rootName = (name: string): string => name.split("/")[1] ?? ""

/** Links each top-level name of the world from `/`, except names that something else uses. */
const worldArguments = (world: string, mounted: ReadonlyArray<string>): ReadonlyArray<string> => {
  const taken = new Set([...systemFolders, "/etc", "/proc", "/dev", "/tmp", "/var", "/run", ...mounted].map(rootName))
  return entriesOf(world, maximumFolders)
    .filter(({ name }) => !taken.has(name))
    .flatMap(({ name }) => ["--symlink", path.join(world, name), `/${name}`])
}

/** The input of a sandbox's file system. All paths are absolute and without symbolic links. */
export interface MountOptions {
  readonly home: string
  /** Folders with the given access. A protected path inside one keeps its protection, unless it is given itself. */
  readonly given: ReadonlyArray<Mount>
  /** Paths hidden wherever they are: the runtime's own files. */
  readonly hidden: ReadonlyArray<string>
  /** Size limit of each private folder, in bytes. */
  readonly bytes: number
  /** The folder that serves as the program's whole file system; one of the given folders. */
  readonly world?: string | undefined
}

/** What is protected or hidden inside the given folders now, except paths that are given themselves. */
export const guardsWithin = ({ given, hidden }: MountOptions): ReadonlyArray<Mount> => {
  const own = new Set(given.map((mount) => mount.path))
  const within = hidden.flatMap((name) => {
    const found = real(name)
    return found !== undefined && !own.has(found) && given.some((mount) => isWithin(mount.path, found)) ? [found] : []
  })
  const guarded = given
    .flatMap((mount) => protectedIn(mount.path))
    .filter((mount) => !own.has(mount.path) && !within.some((name) => isWithin(name, mount.path)))
  return [...guarded, ...within.map((name): Mount => ({ path: name, access: "hidden" }))]
}

/** Those of the guards whose path still exists: bubblewrap fails for a missing one. */
export const remaining = (guards: ReadonlyArray<Mount>): ReadonlyArray<Mount> =>
  guards.filter((guard) => attempt(() => lstatSync(guard.path)) !== undefined)

const identity = (name: string): string | undefined =>
  attempt(() => {
    const { dev, ino } = lstatSync(name, { bigint: true })
    return `${dev}:${ino}`
  })

/**
 * Whether no guarded path was replaced since this call. The kernel detaches a mount whose path the host replaces, and a running
 * sandbox then shows the new file without protection.
 */
export const keeping = (guards: ReadonlyArray<Mount>): (() => boolean) => {
  const before = guards.map((guard) => [guard.path, identity(guard.path)] as const)
  return () =>
    before.every(([name, found]) => {
      const now = identity(name)
      return now === found || now === undefined
    })
}

/** The mounts over the system's folders, with the guards of `guardsWithin`, in the order in which they are made. */
export const mountsOf = ({ given }: MountOptions, guards: ReadonlyArray<Mount>): ReadonlyArray<Mount> =>
  ordered([...pinned(given, guards), ...guards, ...given])

const devices = words("null zero full random urandom tty").map((name) => `/dev/${name}`)

/** What a sandbox shows of the host with these mounts. */
export const meantBy = (mounts: ReadonlyArray<Mount>): ReadonlyArray<Meant> => {
  const system = (names: ReadonlyArray<string>, isReadOnly: boolean) =>
    names.flatMap((point): ReadonlyArray<Meant> => {
      const source = real(point)
      return source === undefined ? [] : [{ source, point, isReadOnly }]
    })
  return [
    ...system([...systemFolders, ...settings], true),
    ...system(devices, false),
    ...mounts.map(({ access, path: name }): Meant => {
      const source = access === "hidden" ? (real("/dev/null") ?? "/dev/null") : name
      // In the sandbox, one is a link to the other.
      return { source, point: name.replace(/^\/var\/tmp(?=\/|$)/, "/tmp"), isReadOnly: access !== "write" }
    })
  ]
}

export const mountArguments = (
  { bytes, home, world }: MountOptions,
  mounts: ReadonlyArray<Mount>
): ReadonlyArray<string> => [
  ...systemArguments(),
  ...settings.flatMap((name) => ["--ro-bind-try", name, name]),
  ...privateFolders(home, bytes),
  ...mounts.flatMap(argumentsOf),
  ...closing(mounts),
  ...(world === undefined ? [] : worldArguments(world, [home, ...mounts.map((mount) => mount.path)])),
  "--remount-ro",
  "/"
]
