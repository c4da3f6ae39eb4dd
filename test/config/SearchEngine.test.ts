import { assert, it } from "@effect/vitest"
import { Either, Redacted } from "effect"
import * as Config from "../../packages/cli/src/config/Config.ts"
import { showIssues } from "../../packages/core/src/definition/Yaml.ts"

const surroundings = { folder: "/etc/daybook", home: "/home/ada", environment: { BRAVE: "s3cret" } }
const parse = (search: string) => Config.parseConfig(`search: ${search}`, surroundings)
const accepted = (search: string) => Either.getOrThrowWith(parse(search), (issues) => new Error(showIssues(issues)))
const refused = (search: string) => Either.match(parse(search), { onLeft: showIssues, onRight: () => "accepted" })

const keyOf = (search: string) => {
  const found = accepted(search).search
  assert(found !== undefined && found.provider !== "searxng")
  return Redacted.value(found.apiKey)
}

it("TO-793: a provider has its key from a variable, or its url; a key in the file is known as such", () => {
  assert.strictEqual(keyOf("{ provider: brave, key: $BRAVE }"), "s3cret")
  assert.strictEqual(keyOf("{ provider: tavily, key: '${TAVILY}' }"), "")
  assert.isUndefined(accepted("{ provider: brave, key: $BRAVE }").literalKeys)
  assert.deepStrictEqual(accepted("{ provider: tavily, key: tvly-1 }").literalKeys, ["search.key"])
  const local = { provider: "searxng", url: "http://127.0.0.1:8888" } as const
  assert.deepStrictEqual(accepted(`{ provider: searxng, url: "${local.url}" }`).search, local)
})

it("TO-793: what a provider needs and lacks, and what is no provider, is named", () => {
  const lacks = "search: expected a key for brave and tavily, and a url for searxng"
  assert.include(refused("{ provider: brave }"), lacks)
  assert.include(refused("{ provider: searxng, key: $BRAVE }"), lacks)
  assert.include(refused("{ provider: google, key: $BRAVE }"), "search.provider: expected brave, tavily or searxng")
  assert.include(refused("{ provider: searxng, url: 'file:///x' }"), "expected an http or https address")
})
