import { assert, describe, it } from "@effect/vitest"
import { Either, Redacted } from "effect"
import * as Config from "../../packages/cli/src/config/Config.ts"
import { showIssues } from "../../packages/core/src/definition/Yaml.ts"

const environment = { LAB_KEY: " l-key\n", TEAM: "red", EMPTY: " " }
const surroundings = { folder: "/etc/daybook", home: "/home/ada", environment }

const parse = (text: string) => Config.parseConfig(text, surroundings)
const accepted = (text: string) => Either.getOrThrowWith(parse(text), (issues) => new Error(showIssues(issues)))
const refused = (text: string) => Either.match(parse(text), { onLeft: showIssues, onRight: () => "accepted" })

/** The one provider `lab` with these fields. */
const lab = (fields: string) =>
  accepted(`providers: { lab: { api: openai-compatible, baseURL: "http://h/v1", ${fields} } }`)
const labOf = (fields: string) => lab(fields).providers?.["lab"]
const shown = (value: Redacted.Redacted | undefined) => (value === undefined ? undefined : Redacted.value(value))

describe("providers", () => {
  it("CF-720: a known one needs nothing, a new one its api and address, or the name of one it is like", () => {
    assert.deepStrictEqual(accepted("providers: { moonshot: { baseURL: https://api.moonshot.cn/v1 } }").providers, {
      moonshot: { baseUrl: "https://api.moonshot.cn/v1" }
    })
    assert.deepStrictEqual(accepted("providers: { lab: { baseURL: http://h/v1, profile: deepseek } }").providers, {
      lab: { baseUrl: "http://h/v1", like: "deepseek" }
    })
    assert.match(
      refused("providers:\n  depseek: { key: $X }"),
      /^line 2, column \d+: providers\.depseek: expected api and baseURL; depseek is not a known provider: did you mean deepseek\?$/
    )
    assert.match(refused("providers: { lab: { api: openai } }"), /providers\.lab: expected baseURL; lab is not/)
  })

  it("CF-720, CF-3: unknown keys and bad values are named with their place and what was meant", () => {
    const lines = refused(
      [
        "providers:",
        "  lab:",
        "    api: chat",
        "    base_url: http://h",
        "    baseURL: ftp://h",
        "    profile: depseek",
        "    models:",
        "      m: { context: 0, outputs: 5, input: [sound], thinking: maybe, price: { input: 1 } }",
        "  a b: { api: openai, baseURL: http://u:p@h/v1 }"
      ].join("\n")
    ).split("\n")
    for (const pattern of [
      /^line 3, column 10: providers\.lab\.api: expected anthropic, openai, openai-compatible or gemini, found "chat"$/,
      /^line 4, .*providers\.lab\.base_url: there is no such key; did you mean "baseURL"\?$/,
      /^line 5, .*providers\.lab\.baseURL: expected an http or https address.*found "ftp:\/\/h"$/,
      /^line 6, .*providers\.lab\.profile: expected the name of a known provider; did you mean deepseek\?/,
      /^line 8, .*models\.m\.context: expected a whole number, 1 or more, found 0$/,
      /^line 8, .*models\.m\.outputs: there is no such key; did you mean "output"\?$/,
      /^line 8, .*models\.m\.input\[0\]: expected text, image or pdf, found "sound"$/,
      /^line 8, .*models\.m\.thinking: expected true, false, or a list of levels, found "maybe"$/,
      /^line 8, .*models\.m\.price\.output: /,
      /^line 9, .*baseURL: expected an http or https address without a user or a password/
    ]) {
      assert.isTrue(
        lines.some((line) => pattern.test(line)),
        `${pattern}\n${lines.join("\n")}`
      )
    }
    assert.match(
      refused("providers: { 'a b': { api: openai, baseURL: http://h } }"),
      /expected a name: 1 to 64 letters/
    )
  })

  it("CF-721: keys and headers take variables, whole or in a text", () => {
    for (const key of ["${LAB_KEY}", "$LAB_KEY", "${env:LAB_KEY}"]) {
      assert.strictEqual(shown(labOf(`key: "${key}"`)?.apiKey), "l-key", key)
    }
    assert.strictEqual(shown(labOf("key: sk-1$2")?.apiKey), "sk-1$2")
    const headers = labOf('headers: { x-team: "${TEAM}", authorization: "Token ${LAB_KEY}" }')?.headers
    assert.deepStrictEqual([shown(headers?.["x-team"]), shown(headers?.["authorization"])], ["red", "Token l-key"])
  })

  it("CF-721: a variable that is unset or empty is named, and no error of the file", () => {
    assert.deepStrictEqual(labOf('key: $NONE, headers: { a: "${EMPTY}" }')?.missing, ["NONE", "EMPTY"])
    assert.deepStrictEqual(labOf("key: $LAB_KEY")?.missing, undefined)
    assert.match(refused('providers: { xai: { key: "${NO-NAME}" } }'), /providers\.xai\.key: expected \$\{NAME\}/)
  })

  it("CF-721: neither settings nor errors show a key or a header", () => {
    const settings = lab('key: sk-secret, headers: { x: "h-secret" }')
    assert.notInclude(JSON.stringify(settings), "secret")
    for (const text of [
      "providers: { lab: { key: [sk-secret] } }",
      "providers: { lab: { headers: [sk-secret] } }",
      "providers: { lab: { headers: { x: [sk-secret] } } }",
      "providers: { lab: sk-secret }",
      'providers: { xai: { key: "sk-secret${" } }'
    ]) {
      assert.notInclude(refused(text), "secret", text)
      assert.notStrictEqual(refused(text), "accepted", text)
    }
  })

  it("CF-722: keys that stand in the file are known by their place", () => {
    assert.deepStrictEqual(lab("key: sk-secret").literalKeys, ["providers.lab.key"])
    assert.isUndefined(lab("key: $LAB_KEY").literalKeys)
  })

  it("CF-723: a profile is a name, or the rules that differ", () => {
    assert.strictEqual(labOf("profile: mistral")?.like, "mistral")
    assert.deepStrictEqual(
      labOf(
        "profile: { like: deepseek, system_role: developer, max_tokens: none, call_ids: { set: word, length: 9, exact: true } }"
      ),
      {
        api: "openai-compatible",
        baseUrl: "http://h/v1",
        like: "deepseek",
        profile: { systemRole: "developer", maxTokens: "none", callIds: { set: "word", length: 9, exact: true } }
      }
    )
    const text = "providers: { lab: { api: openai-compatible, baseURL: http://h, profile: { systemRole: system } } }"
    assert.match(refused(text), /profile\.systemRole: there is no such key; did you mean "system_role"\?/)
  })

  it("CF-724: facts about models are read", () => {
    const models = labOf(
      "models: { 'qwen3:8b': { name: Q, context: 40000, output: 8000, price: { input: 1, output: 2 }, input: [text, image], " +
        "thinking: [low, high] }, plain: { thinking: false, input: [text] } }"
    )?.models
    assert.deepStrictEqual(models, {
      "qwen3:8b": {
        name: "Q",
        contextTokens: 40_000,
        outputTokens: 8_000,
        price: { input: 1, output: 2, cacheRead: 1, cacheWrite: 1 },
        media: ["image"],
        thinks: true,
        variants: ["low", "high"]
      },
      plain: { media: [], thinks: false }
    })
  })
})
