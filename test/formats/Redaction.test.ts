/** Tests redaction of texts and values. Spec: FM-190..FM-196 in specs/formats.md. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import * as Redaction from "../../packages/log/src/support/Redaction.ts"
import { forAll } from "../support/Cases.ts"
import {
  awsKeys,
  commands,
  files,
  keys,
  moreInnocent,
  overLines,
  places,
  tokens as tokenLines,
  vaults
} from "./support/MoreSecretLines.ts"
import { innocent, marked, unmarked } from "./support/SecretLines.ts"
import { harmless, inPlace, secrets } from "./support/Secrets.ts"

const known = "correct-horse-battery"
const planted = Object.entries(secrets).flatMap(([kind, list]) => list.map((secret) => [kind, secret] as const))
const tokens = secrets["token"] ?? []

/** The parts of a secret that must not remain. */
const pieces = (secret: string): ReadonlyArray<string> => secret.match(/[\w]{12,}/g) ?? [secret]

const assertGone = (text: string, secret: string) => {
  for (const piece of pieces(secret)) assert.notInclude(text, piece)
}

const assertMarked = (lines: ReadonlyArray<string>) => {
  for (const line of lines) {
    assert.strictEqual(Redaction.make().text(unmarked(line)), unmarked(line, Redaction.mark), line)
  }
}

describe("Redaction", () => {
  it("FM-190: each secret becomes the mark and is counted by its kind", () => {
    for (const [kind, secret] of planted) {
      const redactor = Redaction.make()
      assert.strictEqual(redactor.text(`it is ${secret} there`), `it is ${Redaction.mark} there`, kind)
      assert.deepStrictEqual([...redactor.counts], [[kind as Redaction.SecretKind, 1]])
    }
  })

  it("FM-191: a credential in a URL, a header or an assignment is replaced, the text around it stays", () => {
    for (const [kind, before, secret, after] of inPlace) {
      const redactor = Redaction.make()
      assert.strictEqual(redactor.text(before + secret + after), before + Redaction.mark + after)
      assert.deepStrictEqual([...redactor.counts.keys()], [kind as Redaction.SecretKind])
    }
  })

  it("FM-192: the value of a secret variable is replaced wherever it stands, a path is not", () => {
    const environment = { MY_TOKEN: known, SSH_AUTH_SOCK: "/run/agent.sock", API_KEY: "short", HOME: "a long value" }
    const values = Redaction.secretsOf(environment)
    assert.deepStrictEqual(values, [known])
    const redactor = Redaction.make(values)
    assert.strictEqual(redactor.text(`a${known}b ${known}`), `a${Redaction.mark}b ${Redaction.mark}`)
    assert.deepStrictEqual([...redactor.counts], [["environment value", 2]])
  })

  it("FM-193: ids, digests, paths, prose and code without secrets stay as they are", () => {
    const redactor = Redaction.make([known])
    for (const text of harmless) assert.strictEqual(redactor.text(text), text)
    assert.strictEqual(redactor.counts.size, 0)
  })

  it("FM-600: a value of a setting, a variable, a URL or an option is replaced whole, and nothing beside it", () => {
    assertMarked(marked)
  })

  it("FM-600: so it is in files of settings, arguments of commands, URLs and headers", () => {
    assertMarked([...tokenLines, ...files, ...commands, ...places])
  })

  it("FM-760: a secret key of AWS without a name is replaced beside an id, on a line that speaks of AWS, or alone", () => {
    assertMarked(awsKeys)
  })

  it("FM-761: a value in quotes that continues on the next lines is replaced up to its closing quote", () => {
    assertMarked(overLines)
  })

  it("FM-762: the body of a vault of Ansible and the private lines of a key are replaced, the lines around them stay", () => {
    assertMarked([...vaults, ...keys])
  })

  it("FM-601: hashes, public keys, certificates, code and prose stay as they are", () => {
    for (const text of [...innocent, ...moreInnocent]) assert.strictEqual(Redaction.make().text(text), text)
  })

  it("FM-194: a secret is found in JSON within JSON, at any depth", () => {
    forAll([fc.constantFrom(...planted, ["environment value", known]), fc.nat(4)], 24, ([, secret], depth) => {
      let text = `before "${secret}" after`
      for (let level = 0; level < depth; level++) text = JSON.stringify({ text })
      const redacted = Redaction.make([known]).text(text)
      assertGone(redacted, secret ?? "")
      assert.match(redacted, /before [\\"]+<redacted>[\\"]+ after/)
    })
  })

  it("FM-194: a secret whose characters are escaped is found", () => {
    const escaped = [...known].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")
    assert.strictEqual(Redaction.make([known]).text(`"${escaped}"`), `"${Redaction.mark}"`)
  })

  it("FM-194: a token that a line break cuts is replaced with its second half", () => {
    forAll(
      [
        fc.constantFrom(...tokens, known),
        fc.double({ min: 0.3, max: 0.9, noNaN: true }),
        fc.constantFrom("\n", "\r\n", "\n    ", " \\\n  ", "\\n")
      ],
      32,
      (secret, part, cut) => {
        // A rest of a few characters is no secret.
        const at = Math.min(Math.max(8, Math.floor(secret.length * part)), secret.length - 8)
        const broken = secret.slice(0, at) + cut + secret.slice(at)
        const redacted = Redaction.make([known]).text(`key: ${broken} and more\nThen it ran`)
        assert.notInclude(redacted, secret.slice(0, at))
        assert.notInclude(redacted, secret.slice(at).slice(0, 12))
        assert.include(redacted, " and more\nThen it ran")
      }
    )
  })

  it("FM-194: the word that follows a token on the next line stays", () => {
    for (const token of tokens) {
      assert.strictEqual(Redaction.make().text(`${token}\nThen it ran`), `${Redaction.mark}\nThen it ran`)
    }
  })

  it("FM-195: strings and keys of a value are redacted; keys that become equal keep their values", () => {
    const [first = "", second = ""] = tokens
    const redactor = Redaction.make()
    assert.deepStrictEqual(redactor.value({ [first]: 1, [second]: [{ deep: `a ${first} b` }], n: null, t: true }), {
      [Redaction.mark]: 1,
      [`${Redaction.mark} 2`]: [{ deep: `a ${Redaction.mark} b` }],
      n: null,
      t: true
    })
  })

  it("FM-195: a text under a secret's name is replaced whole, numbers and objects under it stay", () => {
    const value = { password: "a b", apiKey: "x", tokens: 3, token: { type: "string" }, secret: "" }
    assert.deepStrictEqual(Redaction.make().value(value), {
      password: Redaction.mark,
      apiKey: Redaction.mark,
      tokens: 3,
      token: { type: "string" },
      secret: ""
    })
  })

  it("FM-195: encoded data is replaced whole and counted as a file", () => {
    const redactor = Redaction.make()
    const data = Buffer.from("not a picture".repeat(100)).toString("base64")
    assert.deepStrictEqual(redactor.value([`data:image/png;base64,${data}`, data]), [Redaction.mark, Redaction.mark])
    assert.deepStrictEqual([...redactor.counts], [["file", 2]])
  })

  it("FM-196: redacting twice changes nothing more, and no planted secret remains in any text", () => {
    const piece = fc.oneof(
      fc.constantFrom(...planted.map(([, secret]) => secret), known),
      fc.constantFrom(...inPlace.map(([, before, secret, after]) => before + secret + after)),
      fc.constantFrom(...harmless, "\n", " ", "\\n", '"', "\\", "'", "=", ":"),
      fc.string({ maxLength: 20, unit: "binary" })
    )
    forAll([fc.array(piece, { maxLength: 8 })], 60, (parts) => {
      const once = Redaction.make([known]).text(parts.join(" "))
      const again = Redaction.make([known])
      assert.strictEqual(again.text(once), once)
      assert.strictEqual(again.counts.size, 0)
      for (const [, secret] of planted) assertGone(once, secret)
      assert.isFalse(Redaction.leaks(once, [known]))
    })
  })
})
