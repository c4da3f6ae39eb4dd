/** Facts and events of live shells, for the page that shows them. */
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft, type SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import type { ExecResult } from "../../../packages/shell/src/domain/ExecResult.ts"
import type { ShellEvent } from "../../../packages/shell/src/record/ShellList.ts"
import * as ShellRecord from "../../../packages/shell/src/record/ShellRecord.ts"
import { Effect } from "effect"

export const opened = (shellID = "1_local", cwd = "/home/u") => ShellRecord.opened(shellID, { transport: "local" }, cwd)

export const ran = (command: string, more: Partial<ExecResult> = {}, shellID = "1_local") =>
  ShellRecord.executed(shellID, command, {
    stdout: "",
    stderr: "",
    exit_code: 0,
    duration_ms: 12,
    cwd: "/home/u",
    truncated: false,
    ...more
  })

export const closed = (shellID = "1_local") => ShellRecord.closed(shellID, "destroyed")

/** Facts as events of one session, a second apart. */
export const eventsOf = (facts: ReadonlyArray<ShellRecord.ShellFact>, sessionID = "ses_a"): ReadonlyArray<ShellEvent> =>
  facts.map(
    (fact, at) =>
      // A fact with an envelope is an event of its type.
      ({
        ...fact,
        seq: at,
        position: at + 1,
        id: `evt_${at}`,
        sessionID,
        version: 1,
        created: at * 1_000
      }) as ShellEvent
  )

/** Creates a session that has another event too. */
export const create = (sessionID: SessionID) =>
  Effect.flatMap(EventLog, (log) =>
    log.append(sessionID, [
      draft("session.created", { location: { directory: "/home/u" }, title: sessionID }),
      draft("session.next.renamed", { title: "renamed" })
    ])
  )

/** Appends each fact alone. */
export const append = (sessionID: SessionID, ...facts: ReadonlyArray<ShellRecord.ShellFact>) =>
  Effect.flatMap(EventLog, (log) =>
    Effect.map(
      Effect.forEach(facts, (fact) => log.append(sessionID, [fact])),
      (appended): ReadonlyArray<SessionEvent> => appended.flat()
    )
  )
