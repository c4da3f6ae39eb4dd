/** The bot's settings, rights and ids. Spec: DI-1, DI-30, DI-50, DI-51 in specs/discord.md. */
import { assert, describe, it } from "@effect/vitest"
import { Either, FastCheck } from "effect"
import * as Names from "../../packages/discord/src/domain/Names.ts"
import {
  type ChannelSettings,
  may,
  type People,
  read,
  type Right,
  rights
} from "../../packages/discord/src/domain/Settings.ts"
import { cases } from "../support/Cases.ts"

const ids = FastCheck.subarray(["1", "2", "3", "4"])
const people: FastCheck.Arbitrary<People> = FastCheck.record({ everyone: FastCheck.boolean(), roles: ids, users: ids })
const settings: FastCheck.Arbitrary<ChannelSettings> = FastCheck.record(
  { folder: FastCheck.constant("/work"), ask: people, approve: people, administer: people },
  { requiredKeys: ["folder"] }
)
const person = FastCheck.record({ id: FastCheck.constantFrom("1", "2", "5"), roles: ids })
const snowflake = FastCheck.bigInt({ min: 1n, max: (1n << 63n) - 1n }).map(String)

describe("settings", () => {
  it("DI-50: a file with every key is read, and an unknown key is named with its line", () => {
    const text = `channels:
  "1029384756":
    folder: /work
    agent: build
    model: anthropic/claude-opus-5-5
    budget: { cost: 5, tokens: 1000 }
    ask: { everyone: true }
    approve: { roles: ["1"] }
    administer: { users: ["2"] }
`
    const found = Either.getOrThrow(read(text)).channels["1029384756"]
    assert.deepStrictEqual(found?.budget, { cost: 5, tokens: 1_000 })
    const wrong = read(text.replace("agent:", "agnet:"))
    assert.deepInclude(Either.isLeft(wrong) ? wrong.left[0] : undefined, {
      path: "channels.1029384756.agnet",
      line: 4,
      details: 'there is no such key; did you mean "agent"?'
    })
    assert.isTrue(Either.isLeft(read(text.replace('"1029384756"', "general"))))
    assert.isTrue(Either.isLeft(read(text.replace("folder: /work", ""))))
  })

  it.prop(
    "DI-51: a right includes those before it, and nobody has one that no rule gives",
    [settings, person],
    ([given, who]) => {
      const has = (right: Right) => may(given, who, right)
      if (has("administer")) assert.isTrue(has("approve"))
      if (has("approve")) assert.isTrue(has("ask"))
      for (const right of rights) {
        const named = rights.slice(rights.indexOf(right)).some((each) => {
          const { everyone = false, roles = [], users = [] } = given[each] ?? {}
          return everyone || users.includes(who.id) || roles.filter((role) => who.roles.includes(role)).length > 0
        })
        assert.strictEqual(has(right), named)
      }
    },
    { fastCheck: { numRuns: cases(200) } }
  )
})

describe("ids", () => {
  it.prop(
    "DI-1, DI-30: threads and messages are found again from the ids of their sessions and prompts",
    [snowflake, snowflake, FastCheck.nat()],
    ([one, other, edit]) => {
      assert.strictEqual(Names.threadOf(Names.sessionOf(one)), one)
      assert.strictEqual(Names.messageOf(Names.promptOf(one)), one)
      assert.strictEqual(Names.messageOf(Names.promptOf(one, edit)), one)
      assert.notStrictEqual(Names.promptOf(one), Names.promptOf(one, edit))
      assert.isUndefined(Names.messageOf(Names.promptOfCommand(one)))
      assert.strictEqual(Names.isLater(one, other), BigInt(one) > BigInt(other))
    },
    { fastCheck: { numRuns: cases(100) } }
  )
})
