/**
 * A hard bound for a sandbox of the system's administrator, whose processes `ulimit` does not count: a control group of
 * its own, with twice what `SandboxWatch.ts` lets pass, so that a fork bomb cannot outrun that. Others have `ulimit`.
 * Spec: SB-9.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { Effect, type Scope } from "effect"
import { pause } from "../tool/builtin/ShellProcess.ts"

interface Limits {
  readonly processes: number
  readonly bytes: number
}

const attempt = <A>(act: () => A): A | undefined => {
  try {
    return act()
  } catch {
    return undefined
  }
}

const mounted = "/sys/fs/cgroup"
const prefix = "daybook-sandbox-"

/** Where this process is, by controller; version 2 has one place for all of them. */
const places = (): ReadonlyMap<string, string> =>
  new Map(
    (attempt(() => readFileSync("/proc/self/cgroup", "utf8")) ?? "").split("\n").flatMap((line) => {
      const [, controllers = "", place = ""] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? []
      return controllers.split(",").map((name): [string, string] => [name, place])
    })
  )

/** A folder and those above it, down to the root of its hierarchy. */
const upwards = (place: string): ReadonlyArray<string> =>
  place === "/" ? [place] : [place, ...upwards(path.dirname(place))]

/** The files of a group with their limits. */
type Files = ReadonlyArray<readonly [file: string, limit: number]>

/** A group with limits: in the nearest place that takes one. */
const groupIn = (root: string, place: string, name: string, files: Files): ReadonlyArray<string> => {
  for (const above of upwards(place)) {
    const folder = path.join(root, above, name)
    const made = attempt(() => {
      mkdirSync(folder)
      for (const [file, limit] of files) writeFileSync(path.join(folder, file), String(limit))
      return folder
    })
    if (made !== undefined) return [made]
    attempt(() => rmdirSync(folder))
  }
  return []
}

const isGone = (pid: number) => attempt(() => process.kill(pid, 0)) === undefined

/** Removes groups that processes left which were killed. */
const sweep = (parent: string) =>
  (attempt(() => readdirSync(parent)) ?? [])
    .filter((name) => name.startsWith(prefix) && isGone(Number(name.slice(prefix.length).split("-")[0])))
    .forEach((name) => attempt(() => rmdirSync(path.join(parent, name))))

const make = ({ bytes, processes }: Limits): ReadonlyArray<string> => {
  const found = places()
  const name = `${prefix}${process.pid}-${process.hrtime.bigint()}`
  const [pids, memory, unified] = [found.get("pids"), found.get("memory"), found.get("")]
  const [most, room] = [processes * 2, bytes * 2]
  const groups = [
    ...(pids === undefined ? [] : groupIn(path.join(mounted, "pids"), pids, name, [["pids.max", most]])),
    ...(memory === undefined
      ? []
      : groupIn(path.join(mounted, "memory"), memory, name, [["memory.limit_in_bytes", room]])),
    ...(pids !== undefined || unified === undefined
      ? []
      : groupIn(mounted, unified, name, [
          ["pids.max", most],
          ["memory.max", room]
        ]))
  ]
  for (const group of groups) sweep(path.dirname(group))
  return groups
}

/** The processes were killed; the system may need a moment to know. */
const remove = Effect.fnUntraced(function* (groups: ReadonlyArray<string>) {
  for (let left = groups, tries = 0; left.length > 0 && tries < 100; tries++) {
    left = left.filter((group) => attempt(() => rmdirSync(group)) === undefined && existsSync(group))
    if (left.length > 0) yield* pause(20)
  }
})

/** Enters the groups, then runs the program. Where one cannot be entered, nothing runs. */
const enter = `IFS='
'; for group in $1; do echo $$ > "$group/cgroup.procs" || exit 1; done; unset IFS; shift; exec "$@"`

/** Without a group, what the sandbox runs must not keep the process that watches it from running. */
const idle = ["/usr/bin/chrt", "--idle", "0"]

/** What comes before a sandbox's command, for as long as the scope: it bounds all of its processes together. */
export const bounded = (limits: Limits): Effect.Effect<ReadonlyArray<string>, never, Scope.Scope> =>
  process.geteuid?.() !== 0
    ? Effect.succeed([])
    : Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => make(limits)),
          (groups) => Effect.forkDaemon(remove(groups))
        ),
        (groups) => {
          if (groups.length > 0) return ["/bin/sh", "-c", enter, "group", groups.join("\n")]
          return existsSync("/usr/bin/chrt") ? idle : []
        }
      )
