/** The cursor of the outbox, where the server's events are not those that it knows. Spec: DI-15 in specs/discord.md. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Outbox from "../../packages/discord/src/outbox/Outbox.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { pruned } from "../support/Pruning.ts"
import { says, ScriptedModel } from "../support/ScriptedModel.ts"
import * as People from "./support/People.ts"
import * as Served from "./support/ServedBot.ts"

/** Two starts of the bot on a slow machine. */
const slow = 120_000

/**
 * A thread whose session answers once while the bot is away. `change` is done before the bot starts again: then its cursor does
 * not serve. The thread shows the answers before and after, and not that one; a message of that time is answered.
 */
const withoutTheMiddle = <E, R>(
  reason: string,
  change: (at: Served.Place, thread: { readonly id: string }) => Effect.Effect<unknown, E, R>
) =>
  Effect.gen(function* () {
    const at = yield* Served.place
    const { world } = at.discord
    const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
    const ann = People.join(world, "ann")
    const first = yield* Scope.make()
    yield* Scope.extend(Served.start(at), first)
    const thread = yield* Served.threadIn(at, ann)
    yield* Scope.close(first, Exit.void)
    yield* model.answer(says("Unseen."))
    yield* sessions.ask({ sessionID: Served.sessionIn(thread), prompt: { text: "Meanwhile" } })
    yield* change(at, thread)
    yield* model.answer(says("Seen."))
    People.say(world, ann, thread, "And now?")
    const lines: Array<string> = []
    yield* Served.start(at, undefined, lines)
    assert.isTrue(lines.some((line) => line.startsWith(`${reason}: what happened in between is not published`)))
    yield* at.discord.when("an answer", () => Served.texts(thread).includes("Seen."))
    assert.notInclude(Served.texts(thread), "Unseen.")
  })

/** Moves the cursor of an outbox that no bot uses. */
const moveTo = (cursor: string) => (at: Served.Place) =>
  Effect.scoped(Effect.flatMap(Outbox.make({ filename: Served.options(at).outbox }), ({ apply }) => apply([], cursor)))

Served.law(
  "DI-15: a cursor of another database begins anew at the feed's end, with a warning",
  () => withoutTheMiddle("the server has another database", moveTo("d1.00000000.1")),
  slow
)

Served.law(
  "DI-15: a cursor beyond the events of an older copy begins anew at their end, with a warning",
  () => withoutTheMiddle("the server's database is an older copy", moveTo("999999")),
  slow
)

it.scoped(
  "DI-15: a cursor behind the pruned events begins anew at their floor, with a warning",
  () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.sqlite")
      const prune = (_: Served.Place, thread: { readonly id: string }) =>
        Effect.provide(pruned(Served.sessionIn(thread)), Store.layer({ filename }))
      yield* Effect.provide(withoutTheMiddle("the server has pruned events", prune), Served.layerWith({ filename }))
    }),
  slow
)
