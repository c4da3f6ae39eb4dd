/** Says when a server is asked again, and after which pauses. Pure. Spec: DI-3 in specs/discord.md. */
import { Schedule } from "effect"

const away = ["ServerUnreachable", "LogUnavailable", "Stopping", "TooManyRequests"]

/** A server that fails, or that did not read the request in time (408): nothing was done. */
const isLater = (status: number): boolean => status >= 500 || status === 408

/** Whether the server may answer later. */
export const isAway = (error: { readonly _tag: string; readonly status?: unknown }): boolean =>
  away.includes(error._tag) ||
  (error._tag === "UnexpectedAnswer" && typeof error.status === "number" && isLater(error.status))

/** Growing pauses, up to half a minute, without end. */
export const patiently = Schedule.exponential("500 millis", 2).pipe(
  Schedule.union(Schedule.spaced("30 seconds")),
  Schedule.jittered
)
