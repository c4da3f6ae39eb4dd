/**
 * The id of an owner: `HOST/PID/BOOT:NAMESPACES/START/RANDOM`. It carries what another process needs to tell that the
 * owner's process is gone. A process id says something only within one boot and one pid namespace, and only together
 * with the time at which its process started, since ids are used again. Spec: EX-O3.
 */
import { readFileSync, readlinkSync } from "node:fs"
import { hostname } from "node:os"

const attempt = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

const text = (path: string) => attempt(() => readFileSync(path, "latin1").trim())

/** State and start time out of `/proc/PID/stat`; the name before them may hold spaces and parentheses. */
const statOf = (pid: number | "self") => {
  const fields = text(`/proc/${pid}/stat`)
    ?.replace(/^.*\) /s, "")
    .split(" ")
  const [state, started] = [fields?.[0], fields?.[19]]
  return state === undefined || started === undefined ? undefined : { state, started }
}

/** Whether `/proc` numbers processes as this one's pid namespace does. */
const procIsOurs = (): boolean => /^NSpid:\s+\d+$/m.test(text("/proc/self/status") ?? "")

/**
 * The boot and the namespaces that give process ids and start times their meaning. Systems other than Linux have no
 * such namespaces; there the host's name decides. A Linux that hides its own from us is like no other one.
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

/** What this process can say of itself and of others. */
export interface OwnProcess {
  /** The id of one owner of this process, a new one at each call. */
  readonly ownerID: () => string
  /** True only when the owner's process certainly exists no more. */
  readonly isGone: (ownerID: string) => boolean
}

const signalable = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    // EPERM: it lives, and belongs to another user.
    return !(cause instanceof Error && "code" in cause && cause.code === "ESRCH")
  }
}

/** Reads what identifies this process; `world` replaces the boot and namespaces that it finds. */
export const make = (world: string = worldOf(process.platform)): OwnProcess => {
  const host = hostname().replaceAll("/", "_")
  const started = statOf("self")?.started ?? "-"
  const seesOthers = procIsOurs()
  return {
    ownerID: () => [host, process.pid, world, started, globalThis.crypto.randomUUID().slice(0, 8)].join("/"),
    isGone: (ownerID) => {
      const [itsHost, itsPid, itsWorld, itsStart, instance] = ownerID.split("/")
      const pid = Number(itsPid)
      if (instance === undefined || itsHost !== host || itsWorld !== world) return false
      if (!Number.isSafeInteger(pid) || pid <= 0) return false
      if (!signalable(pid)) return true
      const stat = seesOthers ? statOf(pid) : undefined
      // A zombie has ended; another start time means that the id belongs to another process by now.
      return stat !== undefined && (stat.state === "Z" || stat.state === "X" || stat.started !== itsStart)
    }
  }
}

/** The owner in words, for an error. */
export const describe = (ownerID: string): string => {
  const [host, pid] = ownerID.split("/")
  return pid === undefined ? ownerID : `process ${pid} on ${host}`
}
