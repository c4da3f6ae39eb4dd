/**
 * Checks what a sandbox mounted before its program runs. `bwrap` resolves paths: a job of another sandbox that writes the same
 * folder can put a link in the place of a folder meanwhile, and the link can lead anywhere. Pure but for reading. Spec: SB-18.
 */
import { readFileSync } from "node:fs"
import { isWithin } from "../support/TextFile.ts"

/** A line of the kernel's table of mounts: what is mounted (a path of a file system) and where, as the kernel writes them. */
export interface Line {
  readonly device: string
  readonly root: string
  readonly point: string
  readonly isReadOnly: boolean
}

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
export const strayIn = (
  table: ReadonlyArray<Line>,
  host: ReadonlyArray<Line>,
  meant: ReadonlyArray<Meant>
): string | undefined => {
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
