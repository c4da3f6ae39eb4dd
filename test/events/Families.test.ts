/** What the compiler refuses: `tsc -b` fails if a line that it is told to expect an error in has none. */
import { assert, it } from "@effect/vitest"
import { durable } from "../../packages/log/src/events/Definition.ts"
import { durableDefinitions, type EventIn, type SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"

it("AR-6: a type of events without a family, or with an unknown one, does not compile", () => {
  // @ts-expect-error: it has no family
  durable("session.next.grown", 1, {})
  // @ts-expect-error: there is no such family
  const { family } = durable("growths", "session.next.grown", 1, {})
  const families: ReadonlySet<string> = new Set(durableDefinitions.map((definition) => definition.family))
  assert.isFalse(families.has(family))
  assert.strictEqual(families.size, 10)
})

/** As if the fold had been written before there were live shells. */
const older = ({ type }: Pick<SessionEvent, "type">): number => {
  const event = { type } as SessionEvent
  switch (event.type) {
    case "session.created":
      return 1
    default:
      // @ts-expect-error: it does not name the family of live shells
      event satisfies EventIn<
        "about" | "prompts" | "steps" | "requests" | "texts" | "calls" | "compactions" | "tree" | "decisions"
      >
      return 0
  }
}

/** A family is named although a case reads one of its types. */
const closed = ({ type }: Pick<SessionEvent, "type">): number => {
  const event = { type } as SessionEvent
  switch (event.type) {
    case "session.created":
      return 1
    default:
      event satisfies EventIn<
        "about" | "prompts" | "steps" | "requests" | "texts" | "calls" | "compactions" | "tree" | "decisions" | "shells"
      >
      return 0
  }
}

it("AR-6: a fold that names neither a type nor its family does not compile", () => {
  for (const { type } of durableDefinitions) {
    assert.strictEqual(older({ type }), closed({ type }))
    assert.strictEqual(closed({ type }), type === "session.created" ? 1 : 0)
  }
})
