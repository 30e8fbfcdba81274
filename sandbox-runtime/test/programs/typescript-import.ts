// Runs as it is; the second file is given with --input and imported by its place inside.
import { area, type Shape } from '/job/typescript-shape.ts';

const shapes: Shape[] = [
  { kind: 'square', side: 3 },
  { kind: 'rectangle', width: 2, height: 5 },
];
const total: number = shapes.map(area).reduce((sum, one) => sum + one, 0);
console.log(total satisfies number, import.meta.filename);
