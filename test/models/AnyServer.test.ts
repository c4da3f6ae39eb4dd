/**
 * Method: random logs that break conversations, half of whose steps the model under test made itself, go through the real model of
 * each server's profile; the body that arrives is held against that server's documented rules. `AnyLog.test.ts` does the same for
 * each protocol with its strictest client.
 */
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Layer } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { Models } from "@daybook/models"
import { conversation } from "../../packages/core/src/request/Lowering.ts"
import { historyAt } from "../../packages/core/src/request/Recorded.ts"
import { shownFor } from "../../packages/core/src/request/Request.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Message } from "../../packages/log/src/domain/Message.ts"
import type { ModelRef } from "../../packages/log/src/domain/Values.ts"
import type { Draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import type { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import * as SqlSessionStore from "../../packages/log/src/store/SqlSessionStore.ts"
import { cases } from "../support/Cases.ts"
import { memoryLog } from "../support/Database.ts"
import { hostileLog } from "../support/HostileLogs.ts"
import { modelServers, type Running, start } from "../support/ModelServers.ts"
import { answer, tool } from "./support/Client.ts"

const sessionID = SessionID.make("ses_any")
const offered = [tool("look"), tool("bash"), tool("web_search"), tool("server.tool")]

/** Every second step is the model's own. */
const ownSteps = ([first, ...rest]: NonEmptyReadonlyArray<Draft>, model: ModelRef): NonEmptyReadonlyArray<Draft> => [
  first,
  ...rest.map((one, nth): Draft =>
    one.type === "session.next.step.started" && nth % 2 === 0 ? { ...one, data: { ...one.data, model } } : one
  )
]

/** The rules that a request of these messages breaks. */
const broken = ({ answer: say, faults, provider, ref }: Running, messages: ReadonlyArray<Message>, tools: boolean) =>
  Effect.gen(function* () {
    const resolver = yield* Models.make({ providers: { [ref.providerID]: provider } })
    const { info, model } = yield* resolver.resolve(ref)
    const prompt = conversation(messages, shownFor(info, undefined)).flatMap((one) => one.shown)
    say({ text: "Fine." })
    yield* Effect.either(
      answer(model, { prompt: [{ role: "system", content: "You help." }, ...prompt], tools: tools ? offered : [] })
    )
    return faults()
  })

it.scopedLive(
  "MD-61: a log of what breaks conversations is accepted by every server",
  () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const running = yield* Effect.forEach(modelServers, start)
      const holds = Effect.fnUntraced(
        function* (drafts: NonEmptyReadonlyArray<Draft>, nth: number, tools: boolean) {
          const server = running[nth]
          if (server === undefined) return
          const events = yield* log.append(sessionID, ownSteps(drafts, server.ref))
          const messages = yield* historyAt(sessionID, { baselineSeq: -1, before: events.length })
          const faults = yield* broken(server, messages, tools)
          assert.deepEqual(
            faults,
            [],
            `${server.ref.providerID}: ${JSON.stringify(server.received.at(-1)?.body, null, 1)}`
          )
        },
        Effect.ensuring(Effect.orDie(log.remove(sessionID)))
      )
      const runtime = yield* Effect.runtime<EventLog | SessionStore>()
      const property = fc.asyncProperty(
        hostileLog("x"),
        fc.nat(modelServers.length - 1),
        fc.boolean(),
        (drafts, nth, tools) => Effect.runPromise(Effect.provide(holds(drafts, nth, tools), runtime))
      )
      yield* Effect.promise(() => fc.assert(property, { numRuns: cases(150) }))
    }).pipe(Effect.provide(SqlSessionStore.layer.pipe(Layer.provideMerge(memoryLog)))),
  cases(60_000)
)
