/**
 * Bounds what all processes of a sandbox use together. The system's limits count per process, and do not apply to root,
 * so the processes are sampled several times a second while they run. Spec: SB-9.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { Effect, type Scope } from "effect"
import { pause } from "./ShellProcess.ts"

// Bounds a sandbox of root by a control group, because `ulimit` does not count root's processes. The group's limits are
// twice those of the watch, so a fork bomb cannot outrun the watch.

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

const makeControlGroup = ({ bytes, processes }: Limits): ReadonlyArray<string> => {
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
          Effect.sync(() => makeControlGroup(limits)),
          (groups) => Effect.forkDaemon(remove(groups))
        ),
        (groups) => {
          if (groups.length > 0) return ["/bin/sh", "-c", enter, "group", groups.join("\n")]
          return existsSync("/usr/bin/chrt") ? idle : []
        }
      )

const lookMillis = 100
/** How often a program that does nothing is looked at. */
const calmMillis = 1_000

export interface Limits {
  readonly processes: number
  readonly bytes: number
}

export type Bound = "processes" | "memory"

/** Why a sandbox is ended while its program runs. */
export type Breach = Bound | "unprotected"

export const allowance = (bound: Bound, { bytes, processes }: Limits): string =>
  bound === "processes"
    ? `the sandbox allows ${processes} processes and threads at a time`
    : `the sandbox allows ${bytes} bytes of memory for all processes together`

const read = (name: string): string => {
  try {
    return readFileSync(name, "utf8")
  } catch {
    // The process ended meanwhile.
    return ""
  }
}

const usageOf = (pid: string) => {
  const status = read(`/proc/${pid}/status`)
  const number = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(status)?.[1] ?? 0)
  return { threads: number("Threads"), bytes: (number("RssAnon") + number("RssShmem")) * 1024 }
}

const childrenOf = (pid: string): ReadonlyArray<string> =>
  read(`/proc/${pid}/task/${pid}/children`)
    .split(" ")
    .filter((child) => child !== "")

/** Processes of a sandbox by the numbers that they have outside of it. */
export interface Outside {
  /** The sandbox's first process: with its end the kernel ends all others. */
  readonly init: number
  /** The program that was started in the sandbox. */
  readonly program: number
}

/** Finds the processes of the sandbox whose `bwrap` has this number; undefined once they have ended. */
export const outsideOf = (pid: number): Outside | undefined => {
  const [init] = childrenOf(String(pid))
  const [program] = init === undefined ? [] : childrenOf(init)
  return init === undefined || program === undefined ? undefined : { init: Number(init), program: Number(program) }
}

/** Processes of a sandbox besides those of its program: `bwrap`, and the first process. */
const own = 2

/** The bound that the process tree below `pid` exceeds, or whether only its program runs. */
const look = (pid: number, limits: Limits): Bound | "alone" | "busy" => {
  let [count, bytes] = [0, 0]
  const waiting = [String(pid)]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const used = usageOf(next)
    count += used.threads
    bytes += used.bytes
    if (count > limits.processes + own) return "processes"
    if (bytes > limits.bytes) return "memory"
    waiting.push(...childrenOf(next))
  }
  return count > own + 1 ? "busy" : "alone"
}

/** A long pause that ends when the program is given work. */
export interface Rest {
  readonly pause: Effect.Effect<void>
  readonly end: () => void
}

export const makeRest = (): Rest => {
  let end: () => void = () => undefined
  return {
    // One timer and no fiber: it is the cost of an idle sandbox.
    pause: Effect.async<void>((resume) => {
      const timer = setTimeout(() => resume(Effect.void), calmMillis)
      end = () => {
        clearTimeout(timer)
        resume(Effect.void)
      }
      return Effect.sync(() => clearTimeout(timer))
    }),
    end: () => end()
  }
}

/**
 * Waits until the process tree exceeds a bound, or until `also` finds something, and returns that. While only the program itself
 * runs, which `ulimit` bounds, it is looked at less often, if there is a rest.
 */
export const watch = <A = never>(
  find: () => number | null,
  limits: Limits,
  { also, rest }: { readonly also?: () => A | undefined; readonly rest?: Rest } = {}
): Effect.Effect<Bound | A> =>
  Effect.gen(function* () {
    for (;;) {
      yield* pause(lookMillis)
      const pid = find()
      const found = pid === null ? "busy" : look(pid, limits)
      if (found === "processes" || found === "memory") return found
      const other = also?.()
      if (other !== undefined) return other
      if (found === "alone" && rest !== undefined) yield* rest.pause
    }
  }).pipe(Effect.withSpan("SandboxWatch.watch"))
