/** Says when a server is asked again, and after which pauses. Pure. Spec: DI-3 in specs/discord.md. */
import { Schedule } from "effect"

const away = ["ServerUnreachable", "LogUnavailable", "Stopping", "TooManyRequests"]

/** Whether the server may answer later. */
export const isAway = (error: { readonly _tag: string; readonly status?: unknown }): boolean =>
  away.includes(error._tag) ||
  (error._tag === "UnexpectedAnswer" && typeof error.status === "number" && error.status >= 500)

/** Growing pauses, up to half a minute, without end. */
export const patiently = Schedule.exponential("500 millis", 2).pipe(
  Schedule.union(Schedule.spaced("30 seconds")),
  Schedule.jittered
)
