/**
 * Builds the seccomp filter of a sandbox: system calls that reach past its namespaces, or that sandboxed programs never
 * need, fail as if the kernel lacked them. Pure. Spec: SB-17 in specs/sandbox.md.
 */

interface Calls {
  /** The kernel's number of the architecture; calls of any other one, such as 32-bit ones, fail. */
  readonly architecture: number
  readonly socket: number
  readonly denied: ReadonlyArray<number>
}

const byArchitecture: Readonly<Record<string, Calls>> = {
  // add_key, request_key, keyctl, perf_event_open, bpf, userfaultfd, io_uring_setup, _enter, _register
  x64: { architecture: 0xc000003e, socket: 41, denied: [248, 249, 250, 298, 321, 323, 425, 426, 427] },
  arm64: { architecture: 0xc00000b7, socket: 198, denied: [217, 218, 219, 241, 280, 282, 425, 426, 427] }
}

/** Numbers from here on are those of x32 on x64: the same calls under other numbers. */
const x32 = 0x4000_0000
/** Addresses of virtual machines and their host: no network namespace contains them. */
const vsock = 40

const errors = { noSuchCall: 38, noSuchFamily: 97 }

/** The offsets of what a filter reads: the call's number, the architecture, and the first argument. */
const fields = { number: 0, architecture: 4, firstArgument: 16 }

type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, value: number]

const load = (offset: number): Instruction => [0x20, 0, 0, offset]
/** Skips as many instructions when the loaded number differs. */
const unlessEqual = (value: number, skip: number): Instruction => [0x15, 0, skip, value]
const unlessAtLeast = (value: number, skip: number): Instruction => [0x35, 0, skip, value]
const fail = (error: number): Instruction => [0x06, 0, 0, 0x0005_0000 | error]
const allow: Instruction = [0x06, 0, 0, 0x7fff_0000]

const instructionsFor = ({ architecture, denied, socket }: Calls): ReadonlyArray<Instruction> => [
  load(fields.architecture),
  [0x15, 1, 0, architecture],
  fail(errors.noSuchCall),
  load(fields.number),
  unlessAtLeast(x32, 1),
  fail(errors.noSuchCall),
  ...denied.flatMap((call) => [unlessEqual(call, 1), fail(errors.noSuchCall)]),
  unlessEqual(socket, 3),
  load(fields.firstArgument),
  unlessEqual(vsock, 1),
  fail(errors.noSuchFamily),
  allow
]

/** The filter as bytes for `bwrap --seccomp`; undefined for architectures that are not known. */
export const filterFor = (architecture: string): Uint8Array | undefined => {
  const calls = byArchitecture[architecture]
  if (calls === undefined) return undefined
  const instructions = instructionsFor(calls)
  const bytes = Buffer.alloc(instructions.length * 8)
  for (const [at, [code, whenTrue, whenFalse, value]] of instructions.entries()) {
    bytes.writeUInt16LE(code, at * 8)
    bytes.writeUInt8(whenTrue, at * 8 + 2)
    bytes.writeUInt8(whenFalse, at * 8 + 3)
    bytes.writeUInt32LE(value, at * 8 + 4)
  }
  return bytes
}
