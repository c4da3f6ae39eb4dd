/**
 * Creates a control group that bounds a sandbox run by root, whose processes `ulimit` does not count. Its limits are
 * twice those of `SandboxWatch.ts`, so a fork bomb cannot outrun the watch. Other users are bounded by `ulimit`. Spec:
 * SB-9.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { Effect, type Scope } from "effect"
import { pause } from "./ShellProcess.ts"

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

/** This process's control group by controller; version 2 has one group for all controllers. */
const places = (): ReadonlyMap<string, string> =>
  new Map(
    (attempt(() => readFileSync("/proc/self/cgroup", "utf8")) ?? "").split("\n").flatMap((line) => {
      const [, controllers = "", place = ""] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? []
      return controllers.split(",").map((name): [string, string] => [name, place])
    })
  )

/** A folder and its ancestors, up to the root of the hierarchy. */
const upwards = (place: string): ReadonlyArray<string> =>
  place === "/" ? [place] : [place, ...upwards(path.dirname(place))]

/** A group's limit files with their values. */
type Files = ReadonlyArray<readonly [file: string, limit: number]>

/** Creates a group with limits below the nearest ancestor that allows it. */
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

/** Removes groups left behind by killed processes. */
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

/** Removes groups whose processes were killed. Retries, because the kernel may not have reaped them yet. */
const remove = Effect.fnUntraced(function* (groups: ReadonlyArray<string>) {
  for (let left = groups, tries = 0; left.length > 0 && tries < 100; tries++) {
    left = left.filter((group) => attempt(() => rmdirSync(group)) === undefined && existsSync(group))
    if (left.length > 0) yield* pause(20)
  }
})

/** Enters the groups, then runs the program. If entering one fails, nothing runs. */
const enter = `IFS='
'; for group in $1; do echo $$ > "$group/cgroup.procs" || exit 1; done; unset IFS; shift; exec "$@"`

/** Without a group, the sandbox runs at idle priority so that it cannot starve the process that watches it. */
const idle = ["/usr/bin/chrt", "--idle", "0"]

/** The command prefix that bounds all processes of a sandbox together. The group exists until the scope closes. */
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
