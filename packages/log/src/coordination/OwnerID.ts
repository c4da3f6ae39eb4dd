/**
 * Builds and reads owner ids: `HOST/PID/BOOT:NAMESPACES/START/RANDOM`. An id holds what another process needs to detect
 * that the owner's process is gone. A process id is meaningful only within one boot and one pid namespace, and only
 * with the start time of its process, since process ids are reused. Spec: EX-O3, EX-402.
 */
import { readFileSync, readlinkSync } from "node:fs"
import { hostname } from "node:os"
import { isAlive } from "../support/Alive.ts"

const attempt = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

const text = (path: string) => attempt(() => readFileSync(path, "latin1").trim())

/** The main thread's state and the start time from `/proc/PID/stat`; process names may contain spaces and `)`. */
const statOf = (pid: number | "self") => {
  const fields = text(`/proc/${pid}/stat`)
    ?.replace(/^.*\) /s, "")
    .split(" ")
  const [state, started] = [fields?.[0], fields?.[19]]
  return state === undefined || started === undefined ? undefined : { state, started }
}

/** Whether `/proc` numbers processes as this process's pid namespace does. */
const procIsOurs = (): boolean => /^NSpid:\s+\d+$/m.test(text("/proc/self/status") ?? "")

/**
 * The boot and the namespaces that make process ids and start times comparable. Other systems than Linux have no such
 * namespaces; there the host name decides. If Linux hides them from us, a random value matches no other process.
 */
const worldOf = (platform: NodeJS.Platform): string => {
  if (platform !== "linux") return "-"
  const boot = text("/proc/sys/kernel/random/boot_id")
  const pids = attempt(() => readlinkSync("/proc/self/ns/pid"))
  // Kernels before 5.6 have no time namespaces.
  const time = attempt(() => readlinkSync("/proc/self/ns/time")) ?? "-"
  return boot === undefined || pids === undefined
    ? globalThis.crypto.randomUUID()
    : [boot, pids, time].map((part) => part.replace(/^\w+:\[(.*)\]$/, "$1")).join(":")
}

/**
 * What is certain about an owner's process: `gone`: it no longer exists; `working`: its main thread runs at this moment,
 * so that its event loop may have no time to renew a lease.
 */
export type ProcessState = "gone" | "working" | "unknown"

/** Identifies this process and checks others. */
export interface OwnProcess {
  /** A new owner id of this process for each call. */
  readonly ownerID: () => string
  readonly stateOf: (ownerID: string) => ProcessState
  /** True only if the owner's process certainly no longer exists. */
  readonly isGone: (ownerID: string) => boolean
}

/** Reads what identifies this process; `world` replaces the detected boot and namespaces. */
export const make = (world: string = worldOf(process.platform)): OwnProcess => {
  const host = hostname().replaceAll("/", "_")
  const started = statOf("self")?.started ?? "-"
  const seesOthers = procIsOurs()

  const stateOf = (ownerID: string): ProcessState => {
    const [itsHost, itsPid, itsWorld, itsStart, instance] = ownerID.split("/")
    const pid = Number(itsPid)
    if (instance === undefined || itsHost !== host || itsWorld !== world) return "unknown"
    if (!Number.isSafeInteger(pid) || pid <= 0) return "unknown"
    if (!isAlive(pid)) return "gone"
    const stat = seesOthers ? statOf(pid) : undefined
    if (stat === undefined) return "unknown"
    // A zombie has ended. A different start time means that the process id was reused.
    if (stat.state === "Z" || stat.state === "X" || stat.started !== itsStart) return "gone"
    // The event loop of this process runs: it looks.
    return stat.state === "R" && pid !== process.pid ? "working" : "unknown"
  }

  return {
    ownerID: () => [host, process.pid, world, started, globalThis.crypto.randomUUID().slice(0, 8)].join("/"),
    stateOf,
    isGone: (ownerID) => stateOf(ownerID) === "gone"
  }
}
