import { assert, describe, it } from "@effect/vitest"
import { Either } from "effect"
import * as Commands from "../../packages/cli/src/screen/Commands.ts"
import * as TopLevel from "../../packages/cli/src/screen/TopLevel.ts"
import { backgroundNamed, backgroundOf, themeOf } from "../../packages/cli/src/screen/Theme.ts"

const verb = (...words: ReadonlyArray<string>) => Either.map(TopLevel.parse(words), TopLevel.verbOf)
const refused = (...words: ReadonlyArray<string>) =>
  Either.match(TopLevel.parse(words), { onLeft: ({ message }) => message, onRight: () => "" })

describe("words without a command", () => {
  it("SC-537: -p is the verb prompt with all words behind it, whatever they look like", () => {
    assert.deepStrictEqual(
      verb("-p", "what", "-is", "--this"),
      Either.right(["prompt", "--stdin", "--", "what", "-is", "--this"])
    )
    assert.deepStrictEqual(verb("-p", "--", "-m"), Either.right(["prompt", "--stdin", "--", "-m"]))
  })

  it("SC-536: the options work before and behind -p, and as words", () => {
    const expected = Either.right([
      "prompt",
      "--session",
      "fix",
      "--model",
      "a/b",
      "--agent",
      "plan",
      "--json",
      "--stdin",
      "--",
      "Go"
    ])
    assert.deepStrictEqual(verb("-s", "fix", "-m", "a/b", "-p", "-a", "plan", "--json", "Go"), expected)
    assert.deepStrictEqual(verb("--session=fix", "--model=a/b", "--agent", "plan", "--json", "-p", "Go"), expected)
    assert.deepStrictEqual(verb("-c", "-p", "Go"), Either.right(["continue", "--stdin", "--", "Go"]))
  })

  it("SC-537: options behind the text of -p are options, until --", () => {
    assert.deepStrictEqual(
      verb("-p", "Go on", "--model", "a/b", "--json"),
      Either.right(["prompt", "--model", "a/b", "--json", "--stdin", "--", "Go on"])
    )
    assert.deepStrictEqual(
      verb("-p", "Go", "--", "-m", "x"),
      Either.right(["prompt", "--stdin", "--", "Go", "-m", "x"])
    )
    assert.deepStrictEqual(verb("-p", "Go", "-p", "on"), Either.right(["prompt", "--stdin", "--", "Go", "on"]))
    assert.include(refused("-p", "Go", "-m"), "-m: a value is missing")
  })

  it("SC-562: an option that only a prompt has is one behind -p, and is refused for the screen", () => {
    assert.deepStrictEqual(
      verb("-p", "Go", "--no-run", "--cost", "2", "--tokens=9"),
      Either.right(["prompt", "--no-run", "--cost", "2", "--tokens", "9", "--stdin", "--", "Go"])
    )
    assert.strictEqual(refused("-c", "--json"), "--json goes with a prompt: -p TEXT")
    assert.strictEqual(refused("--cost", "2"), "--cost goes with a prompt: -p TEXT")
  })

  it("SC-536: what is not known is refused with a sentence", () => {
    assert.strictEqual(refused("-x"), "unknown option -x; daybook --help lists all")
    assert.strictEqual(refused("--helo"), "unknown option --helo; did you mean --help? daybook --help lists all")
    assert.include(refused("-s"), "-s: a value is missing")
    assert.include(refused("-c", "word"), 'unexpected argument "word"')
    assert.include(refused("-c", "-s", "fix"), "do not combine")
  })

  it("SC-501: a command, and help, are not read here", () => {
    assert.isTrue(TopLevel.isTopLevel([]))
    assert.isTrue(TopLevel.isTopLevel(["-c"]))
    for (const word of ["prompt", "--help", "-h", "--version", "--completions"])
      assert.isFalse(TopLevel.isTopLevel([word]))
  })

  it("SC-518: a command misspelt or of another agent is told apart from a prompt", () => {
    assert.include(Commands.misspelt("/hepl "), 'there is no command "/hepl"; did you mean help?')
    assert.strictEqual(Commands.misspelt("/clear"), "here, /clear is /new")
    for (const prompt of ["/review", "/clear the table", "clear", "/constructor", "/__proto__"])
      assert.isUndefined(Commands.misspelt(prompt))
  })

  it("SC-563: each name of another agent's command is answered with what is here, and none is a command of the screen", () => {
    const names = new Set(Commands.commands.map(({ name }) => `/${name}`))
    for (const [name, here] of Object.entries(Commands.elsewhere)) {
      assert.isUndefined(Commands.find(`/${name}`), name)
      for (const [named] of here.matchAll(/\/[a-z]+/g)) assert.isTrue(names.has(named), `${name}: ${named}`)
    }
  })

  it("SC-541: the background comes from the terminal's report, else from COLORFGBG", () => {
    assert.strictEqual(backgroundOf("\u001b]11;rgb:ffff/ffff/f0f0\u0007"), "light")
    assert.strictEqual(backgroundOf("\u001b]11;rgb:1e/1e/2e\u001b\\"), "dark")
    assert.isUndefined(backgroundOf("\u001b]11;?\u0007"))
    assert.strictEqual(backgroundNamed("0;15"), "light")
    assert.strictEqual(backgroundNamed("15;default;0"), "dark")
    assert.isUndefined(backgroundNamed(undefined))
  })

  it("SC-540: without colours no style changes a text", () => {
    const { accent, list, markdown, style } = themeOf({ NO_COLOR: "1" }, "dark")
    const { highlightCode, ...styles } = markdown
    assert.isUndefined(highlightCode)
    for (const paint of [accent, style.dim, style.bad, ...Object.values(styles), ...Object.values(list)]) {
      if (typeof paint === "function") assert.strictEqual(paint("text"), "text")
    }
  })
})
