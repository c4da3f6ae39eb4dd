import { tmpdir } from "node:os"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { ReadSql } from "../../packages/log/src/storage/Database.ts"
import { Inbox } from "../../packages/log/src/store/Inbox.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import * as Harness from "../support/Harness.ts"
import { statementsOf } from "../support/Statements.ts"
import { paging } from "./contract/Paging.ts"

const { runtime, say } = Harness

paging(Harness)

const location = { directory: tmpdir() }

it.scoped("PR-7: every page is read by its key: no plan scans a table or sorts", () =>
  Effect.gen(function* () {
    const read = yield* ReadSql
    const sessions = yield* Sessions
    const [store, inbox] = [yield* SessionStore, yield* Inbox]
    for (const title of ["a", "b", "c"]) yield* sessions.create({ location, title })
    const { items, cursor } = yield* sessions.list({ limit: 1 })
    const id = items[0]?.id ?? SessionID.make("ses_none")
    yield* say(id, "hi", { resume: false })
    const paged = statementsOf(
      Effect.all([
        store.get(id),
        sessions.list(),
        sessions.list({ limit: 1, cursor }),
        sessions.list({ limit: 1, cursor, directory: location.directory }),
        sessions.messages({ sessionID: id }),
        sessions.messages({ sessionID: id, order: "desc", cursor: 5 }),
        sessions.inbox(id),
        inbox.waiting(id, { limit: 1, delivery: "queue", through: 5 }),
        inbox.count(id),
        inbox.get(MessageID.make("msg_a")),
        inbox.receipt({ sessionID: id, messageID: MessageID.make("msg_b"), prompt: { text: "b" }, delivery: "steer" }),
        sessions.context(id),
        sessions.interrupted
      ])
    )
    const statements = (yield* paged).filter((text) => /^\s*SELECT/.test(text))
    assert.isAtLeast(statements.length, 12)
    for (const statement of statements) {
      const parameters = Array.from(statement.matchAll(/\?/g), () => null)
      const plan = yield* read.unsafe<{ readonly detail: string }>(`EXPLAIN QUERY PLAN ${statement}`, parameters)
      // Keys that are passed as a list are walked, and the ranges of a history path.
      const steps = plan.filter(
        ({ detail }) =>
          !/^(CORRELATED|SCALAR SUBQUERY|LIST SUBQUERY|SCAN json_each |SCAN [jr] VIRTUAL TABLE|CREATE BLOOM FILTER)/.test(
            detail
          )
      )
      for (const { detail } of steps) {
        // The first page of all sessions walks its index from the end; the rest of a tie is sorted within it.
        assert.match(detail, /^(SEARCH .*(USING (COVERING )?INDEX|PRIMARY KEY|ROWID)|SCAN \w+ USING INDEX)/i, statement)
      }
    }
  }).pipe(Effect.provide(runtime()))
)
