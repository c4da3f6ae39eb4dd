/** Finds the session that `daybook continue` continues. Spec: CL-260. */
import { Effect } from "effect"
import type { Session } from "@daybook/log/domain/Message"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { oneLine } from "../render/Plain.ts"
import { NotFound } from "../support/Errors.ts"
import * as Breadcrumb from "../terminal/Breadcrumb.ts"

/** The session of this terminal, if it was prompted in this folder and still exists. */
const ofTerminal = Effect.fnUntraced(function* (directory: string) {
  const crumb = yield* Breadcrumb.last
  if (crumb === undefined || crumb.directory !== directory) return undefined
  const sessions = yield* SessionStore
  return yield* Effect.catchTag(sessions.get(crumb.sessionID), "SessionNotFound", () => Effect.succeed(undefined))
})

/** The last used session of the folder that no agent created. */
const ofFolder = Effect.fnUntraced(function* (directory: string) {
  const sessions = yield* SessionStore
  let cursor: string | undefined
  do {
    const page = yield* sessions.list({ directory, limit: 100, cursor })
    const found = page.items.find(({ parentID }) => parentID === undefined)
    if (found !== undefined) return found
    cursor = page.cursor
  } while (cursor !== undefined)
  return undefined
})

/** The most recent session of this terminal, else of this folder. */
export const recent = Effect.fn("RecentSession.recent")(function* (
  directory: string
): Effect.fn.Return<
  Session,
  NotFound | Effect.Effect.Error<ReturnType<typeof ofTerminal>> | Effect.Effect.Error<ReturnType<typeof ofFolder>>,
  SessionStore
> {
  const found = (yield* ofTerminal(directory)) ?? (yield* ofFolder(directory))
  if (found !== undefined) return found
  return yield* new NotFound({
    message: `no session was used in ${oneLine(directory, 400)}; daybook prompt starts one, daybook sessions lists others`
  })
})
