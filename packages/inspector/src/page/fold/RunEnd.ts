/** How the last run of a session ended, as a word and as a sentence. Pure. Spec: IP-7, IP-620 in specs/inspector.md. */
import { problemOfActivity, problemWords } from "@daybook/log/domain/AnswerProblem"
import type { Session } from "@daybook/log/domain/Message"

/** A session's state as a word. `cut off`: it says that it runs, but no process runs it. */
export const stateOf = (session: Pick<Session, "activity">, isActive: boolean, isNeedy: boolean): string => {
  const { activity } = session
  if (isNeedy) return "needs you"
  if (isActive) return "running"
  if (activity === undefined) return "idle"
  const problem = problemOfActivity(session)
  if (problem !== undefined) return problemWords(problem)
  return activity.state === "running" ? "cut off" : activity.state
}

const ends = { running: "was cut off", failed: "failed", interrupted: "was interrupted" }
const reasons = { running: "its process ended", failed: "no reason was stored", interrupted: undefined }

/** Why the last run, which is over, has no whole answer; undefined if it has one, or if a person stopped it. */
export const endOf = (session: Pick<Session, "activity">): string | undefined => {
  const { activity } = session
  if (activity === undefined) return undefined
  if (activity.state === "completed") return problemOfActivity(session)?.message
  const why = activity.error?.message ?? reasons[activity.state]
  return why === undefined ? undefined : `The last run ${ends[activity.state]}: ${why}`
}
