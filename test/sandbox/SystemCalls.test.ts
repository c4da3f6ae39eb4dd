import { assert, it } from "@effect/vitest"
import { filterFor } from "../../packages/core/src/child/Sandbox.ts"

/** What the kernel's machine answers for one call: its return value. */
const answer = (
  program: Uint8Array,
  call: { readonly number: number; readonly arch: number; readonly first: number }
) => {
  const bytes = Buffer.from(program)
  const data = new Map([
    [0, call.number],
    [4, call.arch],
    [16, call.first]
  ])
  let loaded = 0
  for (let at = 0; ; at++) {
    const [code, yes, no] = [bytes.readUInt16LE(at * 8), bytes.readUInt8(at * 8 + 2), bytes.readUInt8(at * 8 + 3)]
    const value = bytes.readUInt32LE(at * 8 + 4)
    if (code === 0x20) loaded = data.get(value) ?? assert.fail(`nothing is read at ${value}`)
    else if (code === 0x15) at += loaded === value ? yes : no
    else if (code === 0x35) at += loaded >= value ? yes : no
    else if (code === 0x06) return value
    else assert.fail(`instruction ${code} at ${at}`)
  }
}

const [allowed, noCall, noFamily] = [0x7fff_0000, 0x0005_0026, 0x0005_0061]

it.each([
  ["x64", 0xc000003e, 41, [248, 249, 250, 298, 321, 323, 425, 426, 427]],
  ["arm64", 0xc00000b7, 198, [217, 218, 219, 241, 280, 282, 425, 426, 427]]
] as const)("SB-17: on %s the named calls fail, and no other does", (name, arch, socket, denied) => {
  const program = filterFor(name) ?? assert.fail("a filter is known")
  const failing: ReadonlyArray<number> = denied
  for (let number = 0; number < 600; number++) {
    const expected = failing.includes(number) ? noCall : allowed
    assert.strictEqual(answer(program, { number, arch, first: 2 }), expected, String(number))
    assert.strictEqual(answer(program, { number, arch: 0x40000003, first: 2 }), noCall)
    assert.strictEqual(answer(program, { number: number + 0x4000_0000, arch, first: 2 }), noCall)
  }
  for (let family = 0; family < 50; family++) {
    const expected = family === 40 ? noFamily : allowed
    assert.strictEqual(answer(program, { number: socket, arch, first: family }), expected)
  }
  assert.isUndefined(filterFor("riscv64"))
})
