import { main, type Order } from "./worker.ts"

// The parent writes this type.
main(JSON.parse(process.argv[2] ?? "{}") as Order).catch((error: unknown) => {
  process.stdout.write(`failed ${String(error)}\n`, () => process.exit(1))
})
