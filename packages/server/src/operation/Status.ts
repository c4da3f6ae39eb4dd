/** `status`: the active and waiting runs behind a socket. Spec: SO-92 in specs/socket.md. */
import { Effect, Metric, Option } from "effect"
import type { Session } from "@daybook/log/domain/Message"
import * as Metrics from "@daybook/log/support/Metrics"
import { questionAsk } from "../ask/Asks.ts"
import { runsOf } from "../run/Runs.ts"
import { owns } from "../session/Subject.ts"
import type { Refused } from "../support/Refused.ts"
import type * as Wire from "../wire/Wire.ts"
import type { Endpoint } from "./Endpoint.ts"

/** Runs in one answer, at most. */
const mostRuns = 256

type StatusFrame = Extract<Wire.RunFrame, { readonly type: "status" }>

const placeOf = ({ address, id }: Session) => ({
  session: address?.session ?? id,
  scope: address?.scope ?? "private",
  ...(address?.scope === "shared" ? { shared: address.shared } : {})
})

/** The subject's active and waiting runs of this server. */
export const status = Effect.fn("Served.status")(function* (
  { asks, durable: { backend, drainer }, subject }: Endpoint,
  { id }: Wire.Status
): Effect.fn.Return<StatusFrame, Refused> {
  const runs: Array<Wire.RunStatus> = []
  for (const sessionID of yield* drainer.busy) {
    if (runs.length > mostRuns) break
    // It may have been removed since.
    const session = Option.getOrUndefined(yield* Effect.option(backend.sessions.get(sessionID)))
    if (session === undefined || !(yield* owns(backend, subject, session))) continue
    const found = yield* Effect.orElseSucceed(runsOf(backend, session), () => [])
    const questions = yield* Effect.orElseSucceed(backend.sessions.questions(sessionID), () => [])
    const open = [...asks.open(sessionID).map(({ ask }) => ask), ...questions.map(questionAsk)]
    for (const { clientID, run, state } of found) {
      runs.push({
        ...placeOf(session),
        run,
        ...(clientID === undefined ? {} : { client_id: clientID }),
        state,
        ...(state === "active" && open.length > 0 ? { asks: open } : {})
      })
    }
  }
  const lag = yield* Metric.value(Metric.tagged(Metrics.loopLag, "quantile", "0.99"))
  return {
    type: "status",
    ...(id === undefined ? {} : { id }),
    kind: subject.kind,
    name: subject.name,
    runs: runs.slice(0, mostRuns),
    lag_ms: Math.round(lag.value),
    ...(runs.length > mostRuns ? { more: true } : {})
  }
})
