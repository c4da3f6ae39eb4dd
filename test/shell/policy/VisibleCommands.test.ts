/** The judgement of a line of plain words, beside that of the parser. */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { visibleCommands, type VisibleLine } from "../../../packages/shell/src/policy/VisibleCommands.ts"
import { forAll } from "../../support/Cases.ts"

const known =
  ". [ alias bash builtin case cat cd command coproc dd declare do done echo elif else env esac eval exec export fi find for " +
  "function git if in ionice let local ls make mapfile nice nohup printf read readonly rm select sh source su sudo test then time " +
  "timeout trap typeset unset until wait while xargs PATH IFS -c -s -u -x -i -n -rf --force --recursive -exec -- - + 0 5 a.sh /bin/sh x"
const word = fc.oneof(fc.constantFrom(...known.split(" ")), fc.stringMatching(/^[\w./:,@+-]{1,6}$/))

/** The parser names the place where a line is wrong. */
const withoutPlace = ({ hidden, ...rest }: VisibleLine) => ({
  ...rest,
  hidden: hidden.map((text) => text.replace(/cannot be judged: .*/, "cannot be judged"))
})

it("SL-50: a line of plain words shows the commands that the parser finds in it", () => {
  let plain = 0
  forAll([fc.array(word, { minLength: 1, maxLength: 5 })], 3_000, (words) => {
    const line = words.join(" ")
    if (/^\w/.test(line)) plain++
    // A space at the beginning makes it a line for the parser.
    assert.deepStrictEqual(withoutPlace(visibleCommands(line)), withoutPlace(visibleCommands(` ${line}`)))
  })
  assert.isAbove(plain, 1_000)
})
