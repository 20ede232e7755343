"""Two kernels as PTX, and what they compute. Runs in a child; see `child_talk`.

The ISA and the target are those of CUDA 6.0 and of Kepler: every driver takes code of an older ISA and of an older
target (PTX ISA, `.version` and `.target`), so one text serves all. No instruction in it is newer than ISA 2.0.
"""

from __future__ import annotations

import math

BLOCK = 256         # threads; `mirror` has room for as many numbers
FACTOR, OFFSET, STIR = 1664525, 1013904223, 739982445
WORD = 0xFFFFFFFF
PTX = """\
.version 4.0
.target sm_30
.address_size 64

// y[i] = a * x[i] + y[i] for i < n
.visible .entry saxpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .f32 %f<4>;
    .reg .b32 %r<6>;
    .reg .b64 %d<7>;

    ld.param.u64 %d1, [y];
    ld.param.u64 %d2, [x];
    ld.param.f32 %f1, [a];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra done;
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d2, %d2;
    mul.wide.u32 %d3, %r5, 4;
    add.u64 %d4, %d1, %d3;
    add.u64 %d5, %d2, %d3;
    ld.global.f32 %f2, [%d5];
    ld.global.f32 %f3, [%d4];
    fma.rn.f32 %f3, %f1, %f2, %f3;
    st.global.f32 [%d4], %f3;
done:
    ret;
}

// stirred numbers, each block of them in reverse: shared memory and a barrier
.visible .entry mirror(.param .u64 out, .param .u32 seed)
{
    .reg .b32 %r<12>;
    .reg .b64 %d<4>;
    .shared .align 4 .b8 block[1024];

    ld.param.u64 %d1, [out];
    ld.param.u32 %r1, [seed];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    add.u32 %r6, %r5, %r1;
    mad.lo.u32 %r6, %r6, 1664525, 1013904223;
    shr.u32 %r7, %r6, 15;
    xor.b32 %r6, %r6, %r7;
    mul.lo.u32 %r6, %r6, 739982445;
    mov.u32 %r8, block;
    shl.b32 %r9, %r4, 2;
    add.u32 %r9, %r8, %r9;
    st.shared.u32 [%r9], %r6;
    bar.sync 0;
    sub.u32 %r10, %r3, %r4;
    sub.u32 %r10, %r10, 1;
    shl.b32 %r10, %r10, 2;
    add.u32 %r10, %r8, %r10;
    ld.shared.u32 %r11, [%r10];
    cvta.to.global.u64 %d1, %d1;
    mul.wide.u32 %d2, %r5, 4;
    add.u64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r11;
    ret;
}
"""


def saxpy(a: float, x: list[float], y: list[float]) -> list[float]:
    """What the first kernel computes, in float64."""
    return [a * left + right for left, right in zip(x, y)]  # noqa: B905 - strict came with Python 3.10


def mirror(seed: int, blocks: int) -> list[int]:
    """What the second kernel computes."""
    return [stirred(block * BLOCK + BLOCK - 1 - place + seed) for block in range(blocks) for place in range(BLOCK)]


def stirred(number: int) -> int:
    mixed = (number * FACTOR + OFFSET) & WORD
    return ((mixed ^ (mixed >> 15)) * STIR) & WORD


def waves(count: int, step: float) -> list[float]:
    """Numbers between -4 and 4."""
    return [4 * math.sin(step * place) for place in range(count)]
