/** Takes up what dead processes left: a server has no client that would wake its sessions. Spec: HT-58 in specs/http.md. */
import { Duration, Effect } from "effect"
import { SessionExecution } from "@daybook/core/session/SessionExecution"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"

/** Sessions at a time. */
const atOnce = 16

/** How long a session counts as one of them: one that waits for a person must not hold up the others. */
const longest = Duration.seconds(10)

/** The failure of one session does not concern the others. */
const each = <E>(
  sessions: ReadonlyArray<{ readonly id: SessionID }>,
  work: (id: SessionID) => Effect.Effect<unknown, E>
) =>
  Effect.forEach(
    sessions,
    ({ id }) =>
      Effect.catchAllCause(work(id), (cause) =>
        Effect.annotateLogs(Effect.logWarning("what a dead process left could not be taken up", cause), { session: id })
      ),
    { concurrency: atOnce, discard: true }
  )

/**
 * Settles runs that were cut off, as interrupted, then runs the prompts that wait and that no living process owns. Goes on in
 * the background until the scope closes: it can take a lease's time to find out whether an owner is alive.
 */
export const recover = Effect.gen(function* () {
  const [execution, sessions] = [yield* SessionExecution, yield* Sessions]
  yield* each(yield* sessions.interrupted, sessions.settle)
  yield* each(yield* sessions.waiting, (id) =>
    Effect.zipRight(execution.wake(id), Effect.timeoutOption(execution.settled(id), longest))
  )
}).pipe(
  Effect.catchAllCause((cause) => Effect.logError("taking up what dead processes left failed", cause)),
  Effect.withSpan("Recovery.recover"),
  Effect.forkScoped
)
