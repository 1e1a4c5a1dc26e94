// Written by `generate.rs`.

corpus! {
fn f0(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut pair1 = Pair { first: b, second: [b, (b + 1)] };
    if pair1.second[1] < (pair1.second[1] + a) {
        let mut tuple2 = ((a + 2), ((a * 3), ((pair1.first * 3) + a)));
        let mut tuple3 = ((pair1.second[0] * 3), (((pair1.second[0] + 5) ^ (pair1.first + b)), (((b * 3) + tuple2.1.1) * tuple2.1.1)));
        return tuple3.1.1;
    } else
     {
        {
            let part4 = &mut pair1.second[1];
            *part4 += a;
        }
    }
    'each6: for i5 in range(0, (b * 3) & 3) {
        if !(pair1.first & 1 == 0) {
            *log = *log * 31 + i5;
        }
        a += (a + 0);
        continue;
    }
    pair1.second[1]
}

fn f1(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let value2 = 'block1: {
        a ^= (if (b <= (a * 3) || a >= a) { a } else { (if b != (b * 3) { a } else { b }) });
        a
    };
    let mut v3 = (if b >= value2 { ((value2 + b) ^ b) } else { a });
    let Some(some4) = some_if(true, value2) else {
        *log += 5;
        return ((v3 + (b + 9)) - (b + (a * 3)));
    };
    *log = *log * 31 + a;
    ((value2 * 3) | some4)
}

fn f2(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let first1;
    {
        let value3 = 'block2: {
            if a < (b - (b * 3)) {
            }
            (if (!(a & 1 == 0) && b >= b) { (a + a) } else { ((a * b) ^ a) })
        };
        first1 = b;
    }
    let mut tuple4 = ((b & a), (b, (((first1 * 3) ^ first1) | (b + 9))));
    'unrolled6: for pass5 in range_constexpr(3) {
        b += WEIGHTS[pass5];
        if const_expr(pass5 == 1) {
            *log = *log * 31 + 7;
        }
        'each8: for i7 in range(1, (tuple4.0 | tuple4.1.0) & 3) {
            let first9;
            {
                first9 = (tuple4.1.0 + 8);
            }
            return tuple4.1.1;
        }
    }
    'unrolled11: for pass10 in range_constexpr(3) {
        tuple4.0 += WEIGHTS[pass10];
        if const_expr(pass10 == 1) {
            *log = *log * 31 + 7;
        }
        *log = *log * 31 + (a + (first1 + 9));
        let value13 = 'block12: {
            let mut count14 = (if tuple4.1.1 == (b + 4) { a } else { (tuple4.1.0 | first1) }) & 3;
            let value16 = 'again15: loop {
                count14 -= 1;
                if count14 < 0 {
                    break (b + 0);
                }
                let mut array17 = [(if b > (count14 * 3) { tuple4.1.0 } else { tuple4.1.0 }), (tuple4.1.0 + 1), (count14 * 3)];
            };
            value16
        };
    }
    let mut tuple18 = (tuple4.1.1, (tuple4.1.1, ((first1 + 3) ^ b)));
    tuple4.0
}

fn f3(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut count1 = (a | (a + 4)) & 3;
    let value3 = 'again2: loop {
        count1 -= 1;
        if count1 < 0 {
            break a;
        }
        let Some(some4) = some_if(true, count1) else {
            *log += 5;
            return count1;
        };
        let mut v5 = (a + 9);
    };
    'each7: for i6 in range(2, (b ^ (value3 * 3)) & 3) {
        'unrolled9: for pass8 in range_constexpr(3) {
            b += WEIGHTS[pass8];
            if const_expr(pass8 == 1) {
                *log = *log * 31 + 7;
                continue 'each7;
            }
        }
    }
    'unrolled11: for pass10 in range_constexpr(1) {
        a += WEIGHTS[pass10];
        if const_expr(pass10 == 1) {
            *log = *log * 31 + 7;
        }
        let first12;
        {
            first12 = (((b + 5) | (value3 + 8)) | a);
        }
    }
    let mut count13 = value3 & 3;
    'again14: loop {
        count13 -= 1;
        if count13 < 0 {
            break;
        }
        b ^= b;
        return ((b + 7) | (value3 & (a + 1)));
    }
    if ((b > a && !(a & 1 == 1)) && value3 < (a * value3)) {
        let mut v16 = (value3 * 3);
        let mut array17 = [b, ((value3 * 3) - v16), (b + 8)];
        if (value3 >= array17[0] || (array17[1] >= (array17[2] * array17[1]) && a >= ((array17[0] + 5) - a))) {
        } else
         {
        }
        return v16;
    }
    *log = *log * 31 + value3;
    let first18;
    {
        let mut count19 = (b & value3) & 3;
        let value21 = 'again20: loop {
            count19 -= 1;
            if count19 < 0 {
                break (b + 7);
            }
            'block22: {
                if b >= count19 {
                    b -= (count19 + 9);
                    return (b * 3);
                } else
                 {
                }
            }
            return (a * 3);
        };
        first18 = (value3 + 4);
    }
    first18
}

fn f4(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut tuple1 = ((b + 7), ((a + 3), (a | a)));
    let Some(some2) = some_if(true, (b * 3)) else {
        *log += 5;
        return (tuple1.0 - (a + 4));
    };
    let mut count3 = tuple1.0 & 3;
    let value5 = 'again4: loop {
        count3 -= 1;
        if count3 < 0 {
            break tuple1.1.0;
        }
        let or6 = if tuple1.0 != (a * 3) { (a + 7) } else { break 'again4 b };
    };
    let mut array7 = [a, tuple1.1.0, tuple1.1.1];
    'each9: for i8 in range(1, (array7[1] + 2) & 3) {
        let mut count10 = (tuple1.1.0 * 3) & 3;
        'during11: while count10 > 0 {
            count10 -= 1;
            'unrolled13: for pass12 in range_constexpr(1) {
                array7[1] += WEIGHTS[pass12];
                if const_expr(pass12 == 1) {
                    *log = *log * 31 + 7;
                }
                let mut v14 = (((some2 | count10) ^ array7[2]) ^ (i8 * tuple1.1.0));
            }
        }
        return (a + 2);
    }
    let value16 = 'block15: {
        if array7[2] == tuple1.1.1 {
            return ((array7[1] + 4) - value5);
        } else
         {
        }
        (b | (value5 & tuple1.1.1))
    };
    let Some(some17) = some_if(true, tuple1.1.0) else {
        *log += 5;
        return (some2 + 0);
    };
    let call18 = f0(((some17 - value16) * some17), ((value5 | tuple1.0) - value16), log);
    if ((some17 != (some2 + array7[2]) || a == (some2 + array7[0])) && tuple1.0 == (call18 + some17)) {
        if ((!(a & 1 == 1) || value5 > b) && tuple1.1.0 >= tuple1.1.1) {
        }
    }
    (if (a != (array7[1] * 3) && value16 >= tuple1.0) { ((call18 ^ array7[1]) & b) } else { (if (!(a & 1 == 0) || a >= (tuple1.0 ^ tuple1.0)) { b } else { array7[0] }) })
}

fn f5(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'each2: for i1 in range(1, (b & b) & 3) {
        let mut array3 = [((a * 3) - (i1 + i1)), (i1 + 6), (i1 - (b + 1))];
        if !(array3[1] & 1 == 0) {
            continue;
        } else
         {
        }
    }
    let call4 = f2(b, ((a * b) + b), log);
    let mut count5 = (if a > (call4 * call4) { (a + 0) } else { (a + 8) }) & 3;
    'again6: loop {
        count5 -= 1;
        if count5 < 0 {
            break;
        }
        {
            let part8 = &mut a;
            *part8 += (call4 | (call4 & (*part8)));
        }
        continue;
    }
    match true {
        true => {
            b = (a + 6);
        }
        false => {
        }
    }
    'unrolled10: for pass9 in range_constexpr(2) {
        b += WEIGHTS[pass9];
        if const_expr(pass9 == 1) {
            *log = *log * 31 + 7;
        }
        if !(call4 & 1 == 1) {
            let mut count11 = call4 & 3;
            let value13 = 'again12: loop {
                count11 -= 1;
                if count11 < 0 {
                    break a;
                }
            };
        } else
         {
        }
    }
    let first14;
    {
        b = if a < a { (call4 + a) } else { return (a + 6) };
        a += ((call4 * 3) ^ (b * 3));
        let mut tuple15 = ((if (b <= call4 && a >= (a + 2)) { b } else { (a + 7) }), ((if a > ((a + 0) + a) { a } else { a }), call4));
        first14 = (call4 * 3);
    }
    (first14 | (b | ((call4 + 9) - call4)))
}

fn f6(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let first1;
    if b != b {
        let mut tuple2 = ((b + 7), (a, (if b == (a + (a + 2)) { a } else { a })));
        first1 = (b * 3);
    } else {
        first1 = ((a & a) - a);
    }
    let mut array3 = [(a + (first1 + 2)), b, (first1 ^ (b - (a + 7)))];
    if ((a == (array3[0] * a) || a <= array3[2]) && !(array3[0] & 1 == 0)) {
        let mut count4 = (array3[1] * 3) & 3;
        let value6 = 'again5: loop {
            count4 -= 1;
            if count4 < 0 {
                break ((first1 | array3[1]) + array3[0]);
            }
        };
    } else
     {
    }
    'unrolled8: for pass7 in range_constexpr(3) {
        array3[1] += WEIGHTS[pass7];
        'each10: for i9 in range(1, (a * (first1 * 3)) & 3) {
            let value12 = 'block11: {
                let mut array13 = [((first1 * 3) - first1), array3[0], ((i9 | array3[1]) ^ (array3[1] - array3[1]))];
                (first1 + 7)
            };
        }
    }
    let mut count14 = a & 3;
    let value16 = 'again15: loop {
        count14 -= 1;
        if count14 < 0 {
            break b;
        }
        *log = *log * 31 + (((count14 | array3[2]) | count14) - b);
        let call17 = f5((array3[1] + array3[1]), (a - array3[1]), log);
    };
    if (b == array3[2] || (a != (a | array3[1]) || a != ((first1 + 8) + (a + 8)))) {
        let first18;
        {
            match true {
                true => {
                    let first19;
                    {
                        'block20: {
                        }
                        first19 = (array3[2] * a);
                    }
                }
                false => {
                }
            }
            first18 = first1;
        }
    } else
     {
    }
    {
        let part21 = &mut array3[0];
        let mut pair22 = Pair { first: value16, second: [b, (if (a >= (a * 3) && value16 != value16) { (value16 + 9) } else { first1 })] };
        *part21 += b;
    }
    if b == first1 {
        let first23;
        {
            let first24;
            {
                *log = *log * 31 + (if !(b & 1 == 0) { value16 } else { (array3[1] & (b * 3)) });
                first24 = array3[2];
            }
            first23 = array3[0];
        }
        return ((b ^ b) * first23);
    }
    a
}

fn f7(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    if a != b {
        b += if (b <= b || (!(b & 1 == 0) || b != b)) { (a * 3) } else { return b };
        if b < (a ^ a) {
            *log = *log * 31 + b;
            let mut first1;
            if a == a {
                first1 = (a + 1);
            } else {
                first1 = (b * 3);
            }
            return (first1 + 3);
        }
    }
    'block2: {
        let mut count3 = b & 3;
        'during4: while count3 > 0 {
            count3 -= 1;
            'each6: for i5 in range(2, b & 3) {
            }
        }
        break 'block2;
    }
    'each8: for i7 in range(1, a & 3) {
        let mut pair9 = Pair { first: a, second: [i7, (b + 8)] };
        let mut v10 = pair9.first;
        break 'each8;
    }
    'each12: for i11 in range(1, (b * 3) & 3) {
    }
    b
}

fn f8(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut array1 = [(b + 0), a, (b * 3)];
    a += a;
    let mut count2 = (array1[1] * 3) & 3;
    'again3: loop {
        count2 -= 1;
        if count2 < 0 {
            break;
        }
        if (a < ((count2 + 1) + count2) && (count2 > a || array1[0] >= (array1[0] + (b * 3)))) {
        } else
         {
            break;
        }
    }
    let mut v5 = array1[0];
    'each7: for i6 in range(0, (if v5 >= (array1[0] + 7) { a } else { (b * 3) }) & 3) {
        if ((a <= a && v5 <= i6) || v5 > (v5 + 5)) {
            'each9: for i8 in range(2, a & 3) {
                let value11 = 'block10: {
                    (a * 3)
                };
                break 'each9;
            }
        } else
         {
        }
        continue;
    }
    let value13 = 'block12: {
        'unrolled15: for pass14 in range_constexpr(2) {
            b += WEIGHTS[pass14];
            if const_expr(pass14 == 1) {
                *log = *log * 31 + 7;
            }
            let first16;
            if a == array1[0] {
                first16 = array1[0];
            } else {
                first16 = a;
            }
        }
        a
    };
    if array1[2] != (a * 3) {
        'each18: for i17 in range(2, (array1[0] + 5) & 3) {
            continue;
        }
    }
    (array1[1] * 3)
}

fn f9(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'block1: {
        'each3: for i2 in range(0, b & 3) {
            if (i2 <= (b * 3) && (a <= (b * 3) || a >= b)) {
                continue;
            }
            continue;
        }
        return a;
    }
    let mut tuple4 = (b, (b, (b * 3)));
    let call5 = f4(tuple4.0, (a & (tuple4.1.0 - tuple4.0)), log);
    match false {
        true => {
            let mut v6 = (tuple4.0 * 3);
            if a < b {
                let mut v7 = (tuple4.1.1 + 6);
                return v7;
            }
        }
        false => {
            let mut count8 = b & 3;
            'again9: loop {
                count8 -= 1;
                if count8 < 0 {
                    break;
                }
                continue;
            }
            return ((b * 3) & (tuple4.1.0 * tuple4.1.1));
        }
    }
    let first11;
    {
        {
            let part12 = &mut tuple4.0;
            *part12 += call5;
        }
        first11 = b;
    }
    let mut count13 = call5 & 3;
    'again14: loop {
        count13 -= 1;
        if count13 < 0 {
            break;
        }
        'each17: for i16 in range(2, count13 & 3) {
            let mut count18 = (call5 * 3) & 3;
            let value20 = 'again19: loop {
                count18 -= 1;
                if count18 < 0 {
                    break (tuple4.0 * 3);
                }
            };
        }
    }
    let mut array21 = [call5, (call5 * 3), call5];
    array21[1]
}

fn f10(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    *log = *log * 31 + (b * 3);
    let mut count1 = (a + (a | a)) & 3;
    'again2: loop {
        count1 -= 1;
        if count1 < 0 {
            break;
        }
        'unrolled5: for pass4 in range_constexpr(1) {
            b += WEIGHTS[pass4];
            if const_expr(pass4 == 1) {
                *log = *log * 31 + 7;
                continue 'again2;
            }
        }
        return a;
    }
    b = (a + 9);
    let value7 = 'block6: {
        let call8 = f4((if !(b & 1 == 0) { a } else { b }), (a + 9), log);
        let mut a = a;
        a
    };
    'block9: {
        'block10: {
            *log = *log * 31 + b;
        }
    }
    value7
}

fn f11(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let first1;
    {
        (b, a) = (a, b);
        first1 = a;
    }
    let value3 = 'block2: {
        let mut tuple4 = ((((b * 3) * (first1 * 3)) | (a + 4)), ((first1 + 5), (if (a == (first1 + a) && first1 < b) { (b & (a * 3)) } else { first1 })));
        a
    };
    *log = *log * 31 + a;
    let mut tuple5 = (value3, ((if (a == b && a == b) { value3 } else { value3 }), (if (a <= first1 || b < b) { b } else { (a * 3) })));
    b -= tuple5.1.1;
    let call6 = f0(tuple5.0, first1, log);
    if ((tuple5.1.0 > (tuple5.1.0 * 3) && a != tuple5.0) && call6 >= b) {
        let value8 = 'block7: {
            let mut first9;
            if b < (value3 * 3) {
                match false {
                    true => {
                    }
                    false => {
                    }
                }
                first9 = (first1 * 3);
            } else {
                first9 = a;
            }
            first1
        };
    } else
     {
    }
    tuple5.0 = if !(a & 1 == 0) { (call6 + 4) } else { return first1 };
    if value3 != tuple5.1.0 {
        if !(tuple5.1.1 & 1 == 1) {
            'each11: for i10 in range(1, tuple5.1.1 & 3) {
                let first12;
                {
                    first12 = b;
                }
            }
            return tuple5.0;
        } else
         {
        }
    } else
     {
    }
    (if (a == tuple5.0 && tuple5.1.1 != call6) { (if !(tuple5.1.1 & 1 == 1) { value3 } else { (value3 * call6) }) } else { ((tuple5.1.0 * 3) - tuple5.1.1) })
}

fn f12(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'each2: for i1 in range(0, a & 3) {
        *log = *log * 31 + (b * 3);
    }
    if (a >= (a ^ b) || b < b) {
        a = (b + 0);
        let or3 = if a != a { b } else { return a };
    } else
     {
        let mut count4 = (if b < a { (a + a) } else { (a ^ (a + 4)) }) & 3;
        'during5: while count4 > 0 && a < (a + 0) {
            count4 -= 1;
            if (b == a || b >= (b * 3)) {
                break;
            }
        }
        return (a + 9);
    }
    {
        let part6 = &mut b;
        let call7 = f5(((*part6) * 3), ((*part6) ^ (a + 1)), log);
        *part6 += (a & a);
    }
    if (!(a & 1 == 0) || a != b) {
        'unrolled9: for pass8 in range_constexpr(3) {
            b += WEIGHTS[pass8];
            let mut array10 = [(b * 3), b, ((a + 2) + a)];
        }
    }
    a
}

fn f13(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut count1 = b & 3;
    'during2: while count1 > 0 && (!(b & 1 == 1) && a > (a * 3)) {
        count1 -= 1;
        let mut tuple3 = ((b + 6), ((if count1 < (a + 4) { b } else { ((a + 6) - (a * 3)) }), b));
    }
    let Some(some4) = some_if(true, (b | b)) else {
        *log += 5;
        return (b * 3);
    };
    let value6 = 'block5: {
        a += a;
        (b * 3)
    };
    let mut first7;
    if value6 > some4 {
        if (value6 == (value6 ^ a) || b == (a - (a + 2))) {
            let mut v8 = value6;
        }
        first7 = b;
    } else {
        first7 = b;
    }
    match true {
        true => {
            let mut value6 = (a + (b + 1));
            let mut count9 = (if a < first7 { value6 } else { some4 }) & 3;
            let value11 = 'again10: loop {
                count9 -= 1;
                if count9 < 0 {
                    break (b + 3);
                }
                a = if value6 == b { (count9 + 7) } else { continue 'again10 };
            };
            return (value11 * 3);
        }
        false => {
            return b;
        }
    }
    let first12;
    {
        let mut v13 = (value6 ^ (a + 2));
        first12 = (value6 * 3);
    }
    a += some4;
    (if a < first12 { (b + 5) } else { (some4 * 3) })
}

fn f14(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut v1 = (a + 8);
    let mut array2 = [(b ^ v1), (if !(v1 & 1 == 1) { (a & a) } else { a }), (a + (a + 8))];
    let call3 = f13(v1, b, log);
    'each5: for i4 in range(2, (v1 + 0) & 3) {
        let mut call3 = array2[2];
        *log = *log * 31 + ((a * 3) * call3);
        match true {
            true => {
                'each7: for i6 in range(0, (b + 8) & 3) {
                }
            }
            false => {
            }
        }
    }
    let first8;
    {
        'each10: for i9 in range(0, array2[0] & 3) {
        }
        first8 = array2[0];
    }
    let first11;
    if (a != (array2[0] + (array2[1] + 4)) || !(first8 & 1 == 0)) {
        'unrolled13: for pass12 in range_constexpr(2) {
            array2[0] += WEIGHTS[pass12];
            if const_expr(pass12 == 1) {
                *log = *log * 31 + 7;
                continue;
            }
            'unrolled15: for pass14 in range_constexpr(1) {
                array2[2] += WEIGHTS[pass14];
                if const_expr(pass14 == 1) {
                    *log = *log * 31 + 7;
                }
            }
        }
        first11 = (call3 + 5);
    } else {
        first11 = array2[2];
    }
    *log = *log * 31 + ((first11 + 4) ^ ((array2[0] + 6) - array2[1]));
    if array2[2] > (array2[0] & call3) {
        let or16 = if (v1 < b && first11 >= array2[1]) { call3 } else { return a };
        if a != (a ^ v1) {
            'each18: for i17 in range(0, (a & (b * 3)) & 3) {
            }
            return (b - array2[1]);
        } else
         {
        }
    }
    array2[0]
}

fn f15(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut tuple1 = ((a - a), ((if !(b & 1 == 1) { b } else { (a | b) }), (a * 3)));
    let mut pair2 = Pair { first: tuple1.1.0, second: [(tuple1.1.0 * 3), (a ^ tuple1.1.1)] };
    *log = *log * 31 + (tuple1.0 + 9);
    'each4: for i3 in range(2, pair2.second[1] & 3) {
        'each6: for i5 in range(1, a & 3) {
            let mut count7 = (a + 2) & 3;
            'during8: while count7 > 0 {
                count7 -= 1;
                let mut pair9 = Pair { first: pair2.first, second: [count7, pair2.first] };
            }
            continue 'each6;
        }
        'each11: for i10 in range(2, (pair2.second[0] * 3) & 3) {
        }
    }
    let first12;
    {
        'each14: for i13 in range(0, (if (pair2.first >= a || tuple1.0 < b) { a } else { tuple1.0 }) & 3) {
            let first15;
            {
                'unrolled17: for pass16 in range_constexpr(2) {
                    pair2.second[1] += WEIGHTS[pass16];
                    break 'each14;
                }
                first15 = (pair2.second[0] + 0);
            }
        }
        first12 = pair2.first;
    }
    *log = *log * 31 + pair2.first;
    let mut count18 = (tuple1.1.1 & pair2.first) & 3;
    let value20 = 'again19: loop {
        count18 -= 1;
        if count18 < 0 {
            break (tuple1.1.1 | tuple1.1.1);
        }
        'each22: for i21 in range(2, (first12 + 1) & 3) {
            *log = *log * 31 + (if tuple1.1.0 <= b { (((count18 + 2) + pair2.second[0]) * pair2.second[0]) } else { (((tuple1.1.0 + 5) & pair2.second[1]) | pair2.first) });
        }
        break 'again19 pair2.first;
    };
    'unrolled24: for pass23 in range_constexpr(3) {
        tuple1.1.0 += WEIGHTS[pass23];
        if const_expr(pass23 == 1) {
            *log = *log * 31 + 7;
        }
        let mut count25 = (pair2.second[0] * 3) & 3;
        let value27 = 'again26: loop {
            count25 -= 1;
            if count25 < 0 {
                break (value20 | pair2.second[1]);
            }
            let mut v28 = b;
            let first29;
            {
                'block30: {
                }
                first29 = (count25 + ((count25 * 3) * (b + 7)));
            }
        };
        continue;
    }
    (value20 + 0)
}

fn f16(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    {
        let part1 = &mut a;
        let mut tuple2 = ((if (b != (*part1) || b < ((b + 9) - b)) { b } else { b }), (b, (b * 3)));
        *part1 += (((*part1) | (*part1)) & (*part1));
    }
    *log = *log * 31 + a;
    {
        let part3 = &mut a;
        'each5: for i4 in range(0, (*part3) & 3) {
            break;
        }
        *part3 += b;
    }
    'each7: for i6 in range(2, ((a + 0) * b) & 3) {
        *log = *log * 31 + ((a ^ (i6 + 1)) - i6);
        return (if (b <= b && i6 != (b + 2)) { (i6 + i6) } else { (i6 | i6) });
    }
    let mut first8;
    if b < (a * b) {
        'each10: for i9 in range(0, a & 3) {
            'unrolled12: for pass11 in range_constexpr(3) {
                a += WEIGHTS[pass11];
            }
        }
        first8 = (a * 3);
    } else {
        first8 = a;
    }
    b += (a * 3);
    if first8 != ((a * 3) | b) {
        'each14: for i13 in range(2, b & 3) {
            continue;
        }
    } else
     {
    }
    let mut v15 = b;
    let mut count16 = a & 3;
    let value18 = 'again17: loop {
        count16 -= 1;
        if count16 < 0 {
            break first8;
        }
        'unrolled20: for pass19 in range_constexpr(1) {
            b += WEIGHTS[pass19];
            if const_expr(pass19 == 1) {
                *log = *log * 31 + 7;
                continue 'unrolled20;
            }
            continue 'again17;
        }
    };
    b
}

fn f17(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut count1 = a & 3;
    let value3 = 'again2: loop {
        count1 -= 1;
        if count1 < 0 {
            break (b + 9);
        }
        a -= a;
        b = (((b * 3) & count1) + count1);
        *log = *log * 31 + (a | ((count1 * count1) & count1));
        continue 'again2;
    };
    let Some(some4) = some_if(true, ((b + 5) + b)) else {
        *log += 5;
        return (a + 5);
    };
    'unrolled6: for pass5 in range_constexpr(2) {
        a += WEIGHTS[pass5];
        let call7 = f1((some4 & some4), (some4 * 3), log);
        continue 'unrolled6;
    }
    *log = *log * 31 + (a + 9);
    *log = *log * 31 + (b * 3);
    *log = *log * 31 + (value3 + 5);
    some4
}

fn f18(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut first1;
    if (a <= (a ^ (a * 3)) && (a == a || !(a & 1 == 0))) {
        let mut pair2 = Pair { first: (a & a), second: [b, (b * 3)] };
        let first3;
        {
            first3 = (pair2.second[1] | pair2.second[1]);
        }
        first1 = (b & (b * 3));
    } else {
        a ^= b;
        first1 = (a + 0);
    }
    let mut count4 = b & 3;
    'again5: loop {
        count4 -= 1;
        if count4 < 0 {
            break;
        }
        let or7 = if count4 < (a | a) { a } else { return first1 };
    }
    let mut pair8 = Pair { first: (a * 3), second: [(((b + 0) * (a + 4)) * (b * 3)), (if a >= b { (b + 5) } else { (b + 7) })] };
    *log = *log * 31 + first1;
    'unrolled10: for pass9 in range_constexpr(3) {
        pair8.second[1] += WEIGHTS[pass9];
        let value12 = 'block11: {
            if pair8.first >= first1 {
                (pair8.second[1], pair8.second[0]) = ((pair8.second[0] * 3), pair8.second[1]);
            } else
             {
                continue 'unrolled10;
            }
            first1
        };
    }
    'each14: for i13 in range(0, (if a < pair8.second[0] { pair8.first } else { (pair8.first + 3) }) & 3) {
        let or15 = if first1 != pair8.first { (a | (pair8.second[1] + 6)) } else { return (pair8.first * 3) };
    }
    let first16;
    {
        let Some(some17) = some_if(true, (pair8.second[0] - ((pair8.second[0] * 3) - first1))) else {
            *log += 5;
            return (first1 * 3);
        };
        first16 = a;
    }
    ((pair8.second[1] ^ a) + (first16 * 3))
}

fn f19(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    (b, a) = ((a + b), b);
    let mut tuple1 = (b, (a, (if !(b & 1 == 0) { b } else { ((b * 3) | (a + 3)) })));
    let mut count2 = (tuple1.0 + 5) & 3;
    let value4 = 'again3: loop {
        count2 -= 1;
        if count2 < 0 {
            break (b * 3);
        }
        if ((tuple1.1.0 != (tuple1.1.0 & b) || tuple1.0 <= tuple1.0) || (b == (count2 + 1) && tuple1.1.1 <= tuple1.1.1)) {
        }
        return (if tuple1.0 == a { tuple1.1.0 } else { count2 });
    };
    if ((a < a && value4 == ((tuple1.0 + 5) & (tuple1.1.1 * 3))) && value4 > tuple1.1.1) {
        tuple1.0 -= tuple1.0;
    }
    if tuple1.0 != tuple1.1.0 {
        let or5 = if (a < (tuple1.1.1 * 3) || (tuple1.1.0 == tuple1.0 || !(tuple1.0 & 1 == 1))) { tuple1.0 } else { return (a * 3) };
    } else
     {
        'each7: for i6 in range(0, a & 3) {
        }
    }
    let mut count8 = tuple1.1.0 & 3;
    'again9: loop {
        count8 -= 1;
        if count8 < 0 {
            break;
        }
        let call11 = f12(tuple1.1.1, (((b * 3) & count8) ^ value4), log);
    }
    if tuple1.0 <= tuple1.1.0 {
        let value13 = 'block12: {
            let mut b = (tuple1.1.0 * 3);
            if b >= (tuple1.0 + tuple1.1.1) {
                {
                    let part14 = &mut a;
                    *part14 += (if (*part14) >= (tuple1.1.0 * (b * 3)) { (tuple1.0 ^ tuple1.1.0) } else { tuple1.1.1 });
                }
            } else
             {
            }
            tuple1.1.0
        };
        return ((tuple1.1.0 * b) | ((tuple1.1.0 * 3) & b));
    }
    (value4 + 7)
}

fn f20(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'block1: {
        'block2: {
            break 'block2;
        }
        break 'block1;
    }
    let first3;
    {
        let first4;
        if a > (b & a) {
            let mut count5 = a & 3;
            let value7 = 'again6: loop {
                count5 -= 1;
                if count5 < 0 {
                    break b;
                }
                let mut count8 = b & 3;
                'during9: while count8 > 0 && (count5 >= count5 || !(count5 & 1 == 0)) {
                    count8 -= 1;
                }
            };
            first4 = a;
        } else {
            first4 = (((b & b) - (a * 3)) - b);
        }
        first3 = ((a + 7) + (b + 7));
    }
    let Some(some10) = some_if(true, (a | a)) else {
        *log += 5;
        return first3;
    };
    'block11: {
        let mut array12 = [a, (some10 ^ (first3 * 3)), first3];
    }
    b
}

fn f21(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut array1 = [(a | (b + 3)), (b + 7), b];
    let mut v2 = b;
    let mut array3 = [array1[1], (if array1[2] < a { (array1[2] + v2) } else { array1[1] }), array1[0]];
    *log = *log * 31 + array1[1];
    let first4;
    if array1[0] > (array3[1] + 5) {
        if a > a {
            let first5;
            {
                'unrolled7: for pass6 in range_constexpr(2) {
                    a += WEIGHTS[pass6];
                    if const_expr(pass6 == 1) {
                        *log = *log * 31 + 7;
                        continue;
                    }
                    continue 'unrolled7;
                }
                first5 = (((array3[0] + array3[2]) ^ array1[0]) * ((array1[0] * 3) + array3[0]));
            }
        } else
         {
        }
        first4 = (a * 3);
    } else {
        first4 = array3[1];
    }
    array3[0] -= (array3[2] + 3);
    *log = *log * 31 + ((array1[0] - (array3[1] & array3[2])) & (a + 2));
    *log = *log * 31 + (array1[1] * 3);
    b ^= array1[2];
    (array1[1] * 3)
}

fn f22(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    {
        let part1 = &mut a;
        let value3 = 'block2: {
            if b >= (b * 3) {
            }
            (if (*part1) != b { (b + 3) } else { b })
        };
        *part1 += (*part1);
    }
    let mut array4 = [(if b >= b { b } else { a }), b, (b * a)];
    (b, array4[0]) = ((array4[0] + array4[0]), b);
    if array4[0] == a {
        let mut v5 = (if array4[1] != (a ^ (array4[1] * 3)) { ((array4[1] + 6) ^ array4[0]) } else { (array4[0] & (array4[0] + (array4[2] + 6))) });
        return array4[0];
    }
    let call6 = f15(array4[0], array4[2], log);
    'unrolled8: for pass7 in range_constexpr(2) {
        array4[0] += WEIGHTS[pass7];
        array4[2] -= (call6 | a);
    }
    ((call6 * array4[2]) | (if !(b & 1 == 1) { a } else { array4[0] }))
}

fn f23(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'block1: {
        let mut tuple2 = (b, (a, a));
        'each4: for i3 in range(1, b & 3) {
            'each6: for i5 in range(2, ((tuple2.1.0 + b) + tuple2.0) & 3) {
                let mut tuple7 = ((a * 3), (tuple2.0, ((tuple2.1.1 * a) + ((i3 * 3) ^ tuple2.1.0))));
            }
        }
        break 'block1;
    }
    let mut array8 = [a, b, b];
    (a, b) = (((if array8[1] == array8[1] { array8[1] } else { array8[0] }) - a), a);
    match false {
        true => {
            let mut v9 = a;
        }
        false => {
            a ^= array8[0];
            return array8[1];
        }
    }
    'unrolled11: for pass10 in range_constexpr(2) {
        array8[1] += WEIGHTS[pass10];
        let call12 = f14(array8[1], (array8[1] ^ (array8[0] * 3)), log);
        'block13: {
        }
        break;
    }
    *log = *log * 31 + array8[1];
    let mut tuple14 = (array8[1], ((if b <= array8[0] { a } else { (array8[0] - array8[1]) }), (array8[1] + 2)));
    ((array8[1] * 3) + (a + (array8[0] * 3)))
}

fn f24(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    match true {
        true => {
            {
                let part1 = &mut b;
                *part1 += (*part1);
            }
            return b;
        }
        false => {
        }
    }
    'unrolled3: for pass2 in range_constexpr(1) {
        b += WEIGHTS[pass2];
        if const_expr(pass2 == 1) {
            *log = *log * 31 + 7;
        }
        'block4: {
            let mut count5 = (b + 2) & 3;
            let value7 = 'again6: loop {
                count5 -= 1;
                if count5 < 0 {
                    break (a * 3);
                }
                'each9: for i8 in range(2, count5 & 3) {
                    'each11: for i10 in range(0, i8 & 3) {
                    }
                }
            };
        }
        continue;
    }
    'unrolled13: for pass12 in range_constexpr(3) {
        a += WEIGHTS[pass12];
        if !(a & 1 == 1) {
        } else
         {
        }
    }
    match false {
        true => {
            b += (b + 1);
            return (a * 3);
        }
        false => {
            b -= b;
            'block14: {
                (a, b) = ((b + a), a);
            }
        }
    }
    'unrolled16: for pass15 in range_constexpr(1) {
        b += WEIGHTS[pass15];
        *log = *log * 31 + a;
    }
    let mut a = (b * 3);
    let mut count17 = (if b != b { b } else { (a + 1) }) & 3;
    'during18: while count17 > 0 {
        count17 -= 1;
        'each20: for i19 in range(1, (a + 9) & 3) {
            'unrolled22: for pass21 in range_constexpr(3) {
                a += WEIGHTS[pass21];
                if const_expr(pass21 == 1) {
                    *log = *log * 31 + 7;
                    break 'unrolled22;
                }
                b -= a;
                let mut count17 = (count17 + 3);
            }
            continue 'during18;
        }
        continue;
    }
    b
}

fn f25(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'unrolled2: for pass1 in range_constexpr(2) {
        b += WEIGHTS[pass1];
        if !(a & 1 == 1) {
            a += a;
        }
        break;
    }
    let first3;
    {
        {
            let part4 = &mut b;
            let mut count5 = (a + 5) & 3;
            let value7 = 'again6: loop {
                count5 -= 1;
                if count5 < 0 {
                    break (*part4);
                }
                let mut tuple8 = ((((*part4) | a) ^ (*part4)), (((a & a) - a), ((*part4) * 3)));
                break 'again6 a;
            };
            *part4 += (((*part4) * 3) & (*part4));
        }
        first3 = (b + (a + 6));
    }
    let first9;
    {
        let Some(some10) = some_if(false, (b * (first3 | first3))) else {
            *log += 5;
            return a;
        };
        first9 = first3;
    }
    'unrolled12: for pass11 in range_constexpr(2) {
        a += WEIGHTS[pass11];
        if const_expr(pass11 == 1) {
            *log = *log * 31 + 7;
        }
        if first3 == a {
            return (a + b);
        }
    }
    if b <= first9 {
        match false {
            true => {
                let mut count13 = (a * 3) & 3;
                'again14: loop {
                    count13 -= 1;
                    if count13 < 0 {
                        break;
                    }
                    'unrolled17: for pass16 in range_constexpr(1) {
                        a += WEIGHTS[pass16];
                        let mut count18 = (b * 3) & 3;
                        'again19: loop {
                            count18 -= 1;
                            if count18 < 0 {
                                break;
                            }
                            continue;
                        }
                    }
                    continue;
                }
            }
            false => {
                return first3;
            }
        }
    }
    match false {
        true => {
            'unrolled22: for pass21 in range_constexpr(1) {
                b += WEIGHTS[pass21];
                if const_expr(pass21 == 1) {
                    *log = *log * 31 + 7;
                    return a;
                }
                let mut b = (if a != b { b } else { (if a != a { (b + 4) } else { first9 }) });
            }
        }
        false => {
            return (first9 * 3);
        }
    }
    let mut count23 = first3 & 3;
    'during24: while count23 > 0 {
        count23 -= 1;
    }
    let mut v25 = ((if (a >= (first9 + 8) || first9 != first3) { (first9 + first3) } else { (first9 - b) }) + ((a | (first9 * 3)) & first9));
    (((b & a) * (v25 + 3)) ^ ((v25 + 0) * first3))
}

fn f26(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    if !(b & 1 == 0) {
        b -= (b | a);
        a += if b > (a * 3) { b } else { return (a * 3) };
    } else
     {
    }
    'each2: for i1 in range(2, (if a >= (a & a) { a } else { ((b + 8) & b) }) & 3) {
        if !(b & 1 == 0) {
            b -= (a * 3);
            let or3 = if (!(b & 1 == 0) && (!(i1 & 1 == 0) || a != i1)) { (a + i1) } else { return b };
        }
    }
    let mut count4 = (if (b == (a + 7) || b < (a + 0)) { b } else { (a ^ b) }) & 3;
    let value6 = 'again5: loop {
        count4 -= 1;
        if count4 < 0 {
            break ((a + 4) - count4);
        }
        let value8 = 'block7: {
            'unrolled10: for pass9 in range_constexpr(3) {
                a += WEIGHTS[pass9];
                if const_expr(pass9 == 1) {
                    *log = *log * 31 + 7;
                    break 'block7 a;
                }
            }
            count4
        };
    };
    (b * 3)
}

fn f27(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    *log = *log * 31 + (a & ((a ^ b) & (b & b)));
    let Some(some1) = some_if(true, a) else {
        *log += 5;
        return b;
    };
    if !(some1 & 1 == 0) {
        match false {
            true => {
            }
            false => {
            }
        }
    }
    b ^= (if (some1 > (b * 3) && b < (a * 3)) { ((b + a) * (some1 + 4)) } else { (a * (b & (some1 * 3))) });
    let or2 = if b == a { ((b * 3) & ((some1 + 3) ^ (some1 + 4))) } else { return (a * 3) };
    'each4: for i3 in range(2, (or2 - some1) & 3) {
        let mut i3 = (or2 * 3);
        let mut tuple5 = ((or2 + 3), ((a + 7), (i3 + 5)));
    }
    let call6 = f14(a, (b & a), log);
    let mut count7 = call6 & 3;
    'again8: loop {
        count7 -= 1;
        if count7 < 0 {
            break;
        }
        let first10;
        {
            first10 = b;
        }
    }
    ((a * 3) & (if (a > (call6 - some1) && b > (a * 3)) { (a & call6) } else { a }))
}

fn f28(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut pair1 = Pair { first: a, second: [b, b] };
    if pair1.second[1] > pair1.second[0] {
        let or2 = if ((pair1.second[0] < (a + 7) || b != ((b + 4) * pair1.second[1])) || b == pair1.first) { (pair1.first * 3) } else { return ((pair1.second[0] + 0) ^ b) };
    }
    let or3 = if !(pair1.first & 1 == 0) { (pair1.first * 3) } else { return (pair1.first * 3) };
    'each5: for i4 in range(1, (if b >= pair1.second[1] { (b - or3) } else { b }) & 3) {
        if ((pair1.second[1] != b || a > pair1.second[0]) && (i4 > (pair1.first + pair1.second[0]) || pair1.first < pair1.second[0])) {
            *log = *log * 31 + ((i4 + 3) & a);
            if or3 != pair1.first {
                if pair1.second[0] >= pair1.second[0] {
                }
            } else
             {
            }
        } else
         {
        }
        break;
    }
    ((b * 3) - (pair1.second[0] * 3))
}

fn f29(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'block1: {
        b -= (a * 3);
    }
    'each3: for i2 in range(1, (a + 0) & 3) {
        'each5: for i4 in range(2, (if a == (i2 * 3) { a } else { (i2 * 3) }) & 3) {
            'unrolled7: for pass6 in range_constexpr(3) {
                b += WEIGHTS[pass6];
                let first8;
                if ((i2 == (i4 + 2) && !(i4 & 1 == 0)) && (!(b & 1 == 1) || i4 >= b)) {
                    a += if (b < (a * i2) || i2 == i2) { (a + 5) } else { continue 'unrolled7 };
                    first8 = b;
                } else {
                    first8 = b;
                }
                break 'each5;
            }
        }
    }
    let first9;
    {
        b ^= a;
        let mut count10 = (a + 4) & 3;
        let value12 = 'again11: loop {
            count10 -= 1;
            if count10 < 0 {
                break (a | (count10 * 3));
            }
            let mut first13;
            if (b < a || count10 == count10) {
                let first14;
                if !(count10 & 1 == 0) {
                    first14 = b;
                } else {
                    first14 = a;
                }
                first13 = (a * 3);
            } else {
                first13 = b;
            }
        };
        first9 = b;
    }
    'each16: for i15 in range(2, (a * 3) & 3) {
        *log = *log * 31 + ((if (first9 >= ((b * 3) ^ a) || a > (first9 + 4)) { (b * 3) } else { i15 }) | (b * 3));
        return (first9 * 3);
    }
    (first9 + 5)
}

fn f30(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let Some(some1) = some_if(true, (if (a != (a | a) || a >= (a + 1)) { (b & (a * 3)) } else { b })) else {
        *log += 5;
        return b;
    };
    'each3: for i2 in range(1, (b | b) & 3) {
        'block4: {
            let or5 = if b > (a + 3) { (some1 + 1) } else { continue 'each3 };
            break 'block4;
        }
        return some1;
    }
    let mut count6 = (some1 ^ (some1 * 3)) & 3;
    'again7: loop {
        count6 -= 1;
        if count6 < 0 {
            break;
        }
        'each10: for i9 in range(2, (some1 + b) & 3) {
            b = (b - (i9 + 1));
        }
    }
    let mut b = (b + 0);
    (((b + 6) * b) * (a | some1))
}

fn f31(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let first1;
    if (!(b & 1 == 0) && b <= b) {
        let mut tuple2 = ((if a != (a - b) { (b + 0) } else { (b | b) }), ((a * 3), a));
        first1 = (b + 1);
    } else {
        let first3;
        {
            (b, a) = (b, b);
            first3 = (if (a >= a && a != (b * 3)) { b } else { b });
        }
        first1 = a;
    }
    let first4;
    {
        let mut count5 = first1 & 3;
        'during6: while count5 > 0 {
            count5 -= 1;
            let mut a = (count5 + 2);
        }
        first4 = (first1 * 3);
    }
    let call7 = f7(a, (b + 9), log);
    let mut array8 = [(call7 * 3), b, a];
    'unrolled10: for pass9 in range_constexpr(3) {
        a += WEIGHTS[pass9];
        if const_expr(pass9 == 1) {
            *log = *log * 31 + 7;
            continue;
        }
        'block11: {
            a -= (if (array8[0] < first1 || !(first4 & 1 == 1)) { (call7 * 3) } else { (first4 * 3) });
            let mut array12 = [first4, (first1 + 2), (first4 * 3)];
            return (array12[1] + 4);
        }
        break;
    }
    'each14: for i13 in range(1, (a + b) & 3) {
        if array8[2] > (call7 + 3) {
            match false {
                true => {
                    'each16: for i15 in range(1, (if (first4 <= array8[1] || call7 > first4) { first1 } else { array8[2] }) & 3) {
                        a += a;
                    }
                    continue 'each14;
                }
                false => {
                }
            }
        } else
         {
        }
        continue 'each14;
    }
    array8[2] -= (first1 ^ array8[0]);
    match false {
        true => {
            array8[0] = if array8[2] >= a { first1 } else { return first1 };
        }
        false => {
            array8[1] += if array8[2] > array8[0] { array8[2] } else { return first4 };
        }
    }
    b
}

fn f32(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    *log = *log * 31 + b;
    let mut count1 = b & 3;
    'during2: while count1 > 0 {
        count1 -= 1;
        'each4: for i3 in range(0, count1 & 3) {
            if !(a & 1 == 1) {
                let mut pair5 = Pair { first: count1, second: [b, ((b + 6) ^ b)] };
                let first6;
                {
                    first6 = count1;
                }
            }
            break;
        }
        break;
    }
    let mut b = (if !(a & 1 == 0) { b } else { b });
    b = a;
    let first7;
    if b < b {
        let first8;
        if (!(a & 1 == 1) && b < (b - a)) {
            'block9: {
            }
            first8 = (((b + b) - a) & ((b * 3) ^ b));
        } else {
            first8 = ((a * 3) & ((a * 3) & (a + a)));
        }
        first7 = a;
    } else {
        first7 = b;
    }
    if first7 == first7 {
        if a == a {
            'each11: for i10 in range(0, a & 3) {
                let mut pair12 = Pair { first: a, second: [first7, (((a * 3) - (b * 3)) - (b - a))] };
                let mut array13 = [b, i10, (pair12.second[1] + 6)];
            }
        } else
         {
        }
        return first7;
    } else
     {
    }
    *log = *log * 31 + (if a > a { (if (a == first7 || b > ((a * 3) + a)) { (first7 * 3) } else { a }) } else { (((first7 + 5) * b) * b) });
    (a * 3)
}

fn f33(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut v1 = a;
    if (v1 <= (v1 * 3) || a >= ((a + 1) & (b + 7))) {
        let first2;
        if (b == b && (!(v1 & 1 == 1) && v1 != a)) {
            v1 -= (a - (a & v1));
            first2 = b;
        } else {
            first2 = v1;
        }
        return ((v1 * 3) ^ (b + 6));
    }
    'block3: {
        'unrolled5: for pass4 in range_constexpr(1) {
            v1 += WEIGHTS[pass4];
            if !(v1 & 1 == 1) {
            } else
             {
                return (a - v1);
            }
            continue;
        }
        return (a * 3);
    }
    'each7: for i6 in range(0, (a & v1) & 3) {
        let mut tuple8 = (v1, (v1, (i6 * 3)));
    }
    (a * 3)
}

fn f34(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut pair1 = Pair { first: (a * 3), second: [b, (a + 5)] };
    let mut tuple2 = ((a - (pair1.second[1] + 7)), (pair1.first, a));
    let mut count3 = ((tuple2.1.1 * 3) + (tuple2.0 ^ (b + 0))) & 3;
    'again4: loop {
        count3 -= 1;
        if count3 < 0 {
            break;
        }
        let mut array6 = [b, (pair1.second[1] + 1), b];
    }
    'each8: for i7 in range(0, (if tuple2.1.1 == tuple2.0 { pair1.second[0] } else { ((pair1.second[1] + 7) | pair1.second[1]) }) & 3) {
        *log = *log * 31 + (if pair1.second[0] > ((tuple2.1.0 + 6) - pair1.first) { tuple2.0 } else { i7 });
        let mut count9 = a & 3;
        'during10: while count9 > 0 {
            count9 -= 1;
            'unrolled12: for pass11 in range_constexpr(2) {
                tuple2.0 += WEIGHTS[pass11];
                if const_expr(pass11 == 1) {
                    *log = *log * 31 + 7;
                }
                'each14: for i13 in range(0, ((pair1.second[1] * 3) & tuple2.1.0) & 3) {
                }
                break 'during10;
            }
            continue 'each8;
        }
    }
    let mut array15 = [pair1.first, tuple2.1.1, pair1.second[0]];
    *log = *log * 31 + pair1.first;
    'unrolled17: for pass16 in range_constexpr(3) {
        pair1.second[0] += WEIGHTS[pass16];
        let first18;
        if pair1.second[1] <= (pair1.second[0] + 5) {
            let or19 = if array15[1] > ((array15[2] + 2) - (tuple2.0 * 3)) { b } else { return (pair1.first * 3) };
            let mut count20 = a & 3;
            'during21: while count20 > 0 {
                count20 -= 1;
            }
            first18 = (array15[1] + 3);
        } else {
            first18 = a;
        }
    }
    let mut v22 = (pair1.second[1] & (pair1.second[0] * a));
    let Some(some23) = some_if(false, (b * v22)) else {
        *log += 5;
        return (if (v22 == tuple2.0 && !(pair1.second[0] & 1 == 1)) { tuple2.1.1 } else { pair1.first });
    };
    v22
}

fn f35(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let Some(some1) = some_if(true, (a + 7)) else {
        *log += 5;
        return (b * 3);
    };
    'unrolled3: for pass2 in range_constexpr(2) {
        a += WEIGHTS[pass2];
        if (a != (some1 + 5) || some1 >= b) {
            continue;
        }
    }
    let mut count4 = (a * 3) & 3;
    let value6 = 'again5: loop {
        count4 -= 1;
        if count4 < 0 {
            break a;
        }
        if ((b < (b + 1) && b >= (count4 - some1)) && (!(count4 & 1 == 0) || count4 < b)) {
            let mut tuple7 = ((b + 9), (some1, a));
        } else
         {
        }
        break 'again5 (b - (count4 - a));
    };
    let mut b = value6;
    if ((a >= ((value6 * 3) | value6) && !(a & 1 == 1)) && (value6 != (a + 1) || b <= (a * b))) {
        let mut array8 = [value6, (b ^ value6), some1];
        return (b + 1);
    } else
     {
        let first9;
        if value6 > (b & some1) {
            first9 = (a * 3);
        } else {
            first9 = (some1 * 3);
        }
    }
    (a * 3)
}

fn f36(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let or1 = if !(b & 1 == 1) { (b * (a & b)) } else { return (a * 3) };
    let or2 = if or1 > or1 { or1 } else { return ((a + 6) | b) };
    'block3: {
        if or1 <= (or2 - or1) {
            *log = *log * 31 + (if !(or2 & 1 == 1) { (or2 + 9) } else { or2 });
            'each5: for i4 in range(0, a & 3) {
                'unrolled7: for pass6 in range_constexpr(1) {
                    b += WEIGHTS[pass6];
                    if const_expr(pass6 == 1) {
                        *log = *log * 31 + 7;
                        break 'unrolled7;
                    }
                }
                break 'block3;
            }
        }
    }
    {
        let part8 = &mut b;
        let mut tuple9 = ((if a > ((a * 3) - a) { ((*part8) * 3) } else { (*part8) }), ((if (or1 != a && or2 == a) { (or1 * 3) } else { (or2 + 3) }), ((or2 + 4) | ((*part8) + 0))));
        let mut count10 = (or1 * 3) & 3;
        'during11: while count10 > 0 {
            count10 -= 1;
            if !(a & 1 == 0) {
                if !(tuple9.1.1 & 1 == 1) {
                } else
                 {
                }
            }
        }
        *part8 += (a - (or1 + 3));
    }
    let call12 = f30((or2 + 2), a, log);
    if or2 <= call12 {
        if !(or1 & 1 == 1) {
            'each14: for i13 in range(0, b & 3) {
                *log = *log * 31 + (if (i13 < (call12 * 3) || or2 < (b + 7)) { (if !(or2 & 1 == 0) { i13 } else { (i13 ^ or1) }) } else { a });
                let mut count15 = (a - (b * 3)) & 3;
                'during16: while count15 > 0 {
                    count15 -= 1;
                }
                continue 'each14;
            }
        } else
         {
            return b;
        }
        return (or2 ^ (a + 4));
    } else
     {
    }
    (a, b) = ((a ^ a), a);
    match true {
        true => {
            let Some(some17) = some_if(true, (or2 + 4)) else {
                *log += 5;
                return (if b < call12 { call12 } else { a });
            };
            let mut pair18 = Pair { first: ((call12 + 7) & b), second: [call12, ((or2 + 3) * (or2 + 9))] };
            return or1;
        }
        false => {
            let first19;
            {
                first19 = ((if (or2 == (b - a) || or1 < call12) { (call12 & a) } else { (or2 * 3) }) | ((call12 & (a + 6)) ^ (b * 3)));
            }
        }
    }
    ((or2 * 3) | or1)
}

fn f37(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let call1 = f6((a + 7), (b + b), log);
    let mut count2 = (if b > b { b } else { call1 }) & 3;
    'again3: loop {
        count2 -= 1;
        if count2 < 0 {
            break;
        }
        'each6: for i5 in range(2, a & 3) {
            if count2 <= count2 {
            }
        }
        continue 'again3;
    }
    'each8: for i7 in range(1, (b + 6) & 3) {
        'each10: for i9 in range(2, a & 3) {
            let mut count11 = ((call1 * 3) ^ call1) & 3;
            let value13 = 'again12: loop {
                count11 -= 1;
                if count11 < 0 {
                    break (if !(i7 & 1 == 0) { b } else { ((i9 * 3) + i7) });
                }
                let first14;
                {
                    {
                        let part15 = &mut b;
                        *part15 += call1;
                    }
                    first14 = (b & a);
                }
                return a;
            };
        }
        continue;
    }
    'unrolled17: for pass16 in range_constexpr(3) {
        a += WEIGHTS[pass16];
        if const_expr(pass16 == 1) {
            *log = *log * 31 + 7;
            return a;
        }
        let mut count18 = call1 & 3;
        let value20 = 'again19: loop {
            count18 -= 1;
            if count18 < 0 {
                break call1;
            }
            let mut array21 = [a, count18, b];
        };
    }
    (b ^ (if (call1 > call1 || a < ((b + 3) | call1)) { a } else { (call1 | b) }))
}

fn f38(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut count1 = a & 3;
    'during2: while count1 > 0 {
        count1 -= 1;
        'each4: for i3 in range(0, (count1 + 1) & 3) {
            'each6: for i5 in range(2, (count1 | a) & 3) {
                let first7;
                {
                    first7 = (i5 * 3);
                }
            }
        }
        continue;
    }
    let value9 = 'block8: {
        let value11 = 'block10: {
            if b == b {
            }
            ((b * 3) | (if a < (a + 7) { b } else { (a + 6) }))
        };
        a
    };
    let mut first12;
    if b > (b * 3) {
        {
            let part13 = &mut b;
            let value15 = 'block14: {
                'block16: {
                    if !((*part13) & 1 == 1) {
                    }
                }
                ((*part13) & a)
            };
            *part13 += (*part13);
        }
        first12 = ((value9 + (b - b)) - (value9 * 3));
    } else {
        first12 = ((((value9 * 3) - (b + 3)) ^ (a | (a + 4))) | (a * 3));
    }
    let value18 = 'block17: {
        a
    };
    b += a;
    let Some(some19) = some_if(true, (((first12 - b) | b) & b)) else {
        *log += 5;
        return (if (value9 >= (first12 & value18) || a > (b + 7)) { (b - value18) } else { (b * 3) });
    };
    let first20;
    {
        *log = *log * 31 + first12;
        first20 = a;
    }
    'each22: for i21 in range(1, some19 & 3) {
        let value24 = 'block23: {
            if b >= ((value9 + 8) - first12) {
                let mut array25 = [first20, first12, (if (first20 < (value9 & b) || !(i21 & 1 == 1)) { a } else { a })];
                (array25[0], array25[1]) = ((if (a > array25[0] || value9 >= value18) { first20 } else { b }), array25[0]);
                return (array25[1] * (b + first20));
            }
            a
        };
    }
    value9
}

fn f39(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let or1 = if a != a { b } else { return b };
    if or1 != or1 {
        'each3: for i2 in range(0, (or1 | or1) & 3) {
        }
    }
    let mut pair4 = Pair { first: b, second: [(b * 3), (a + 8)] };
    let mut array5 = [(pair4.second[1] * 3), (if pair4.first != pair4.second[0] { (pair4.second[1] | a) } else { (b + pair4.first) }), pair4.second[1]];
    array5[0] = pair4.second[0];
    {
        let part6 = &mut a;
        'unrolled8: for pass7 in range_constexpr(1) {
            pair4.second[0] += WEIGHTS[pass7];
            'block9: {
                if ((pair4.second[0] < (array5[2] + pair4.first) && pair4.second[1] < array5[1]) || b < pair4.second[0]) {
                    let first10;
                    {
                        first10 = (or1 * 3);
                    }
                } else
                 {
                }
            }
            break;
        }
        *part6 += (b - (pair4.second[1] + 4));
    }
    let mut count11 = (array5[0] + 7) & 3;
    let value13 = 'again12: loop {
        count11 -= 1;
        if count11 < 0 {
            break pair4.second[0];
        }
        'block14: {
            match false {
                true => {
                    if array5[2] <= pair4.first {
                    } else
                     {
                        return (pair4.first * 3);
                    }
                }
                false => {
                }
            }
        }
    };
    (or1 + 4)
}

fn f40(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let call1 = f15(((a & b) ^ (b + 0)), a, log);
    let mut a = a;
    let mut count2 = call1 & 3;
    'during3: while count2 > 0 && !(b & 1 == 1) {
        count2 -= 1;
        if count2 <= (count2 * call1) {
            let mut count4 = (b ^ (a | (call1 + 2))) & 3;
            let value6 = 'again5: loop {
                count4 -= 1;
                if count4 < 0 {
                    break count4;
                }
                let first7;
                if count4 <= count4 {
                    first7 = ((count2 | (call1 + 9)) * a);
                } else {
                    first7 = (call1 * 3);
                }
            };
        }
        break;
    }
    'unrolled9: for pass8 in range_constexpr(1) {
        b += WEIGHTS[pass8];
        if const_expr(pass8 == 1) {
            *log = *log * 31 + 7;
        }
        let first10;
        {
            b += (call1 * 3);
            (b, a) = (((if (a <= b || a < (call1 * 3)) { (a * 3) } else { (b + a) }) ^ (if call1 >= (call1 + 9) { a } else { (call1 | b) })), b);
            first10 = a;
        }
    }
    ((call1 + 3) ^ call1)
}

fn f41(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'unrolled2: for pass1 in range_constexpr(1) {
        a += WEIGHTS[pass1];
        'each4: for i3 in range(2, ((b + a) | (b + 6)) & 3) {
            (b, a) = (a, b);
            b = b;
        }
    }
    if a <= (a * b) {
        let value6 = 'block5: {
            let mut count7 = ((b - a) - (a + 4)) & 3;
            'during8: while count7 > 0 {
                count7 -= 1;
            }
            (if b < b { (b + 9) } else { b })
        };
        return (((a + 9) - value6) - (a - (value6 * 3)));
    } else
     {
        return (a + 4);
    }
    'each10: for i9 in range(1, (a * 3) & 3) {
        *log = *log * 31 + (i9 + 2);
    }
    let value12 = 'block11: {
        let value14 = 'block13: {
            if a <= ((a + 7) + a) {
                'unrolled16: for pass15 in range_constexpr(3) {
                    b += WEIGHTS[pass15];
                    if const_expr(pass15 == 1) {
                        *log = *log * 31 + 7;
                    }
                }
            }
            b
        };
        b
    };
    let call17 = f27(value12, b, log);
    let mut first18;
    if ((a >= b && call17 <= (call17 & a)) && !(b & 1 == 1)) {
        if a != (call17 + b) {
        }
        first18 = (if (!(call17 & 1 == 0) || call17 > (b + 8)) { (b * 3) } else { (if b < call17 { call17 } else { (a * 3) }) });
    } else {
        first18 = value12;
    }
    let first19;
    {
        'unrolled21: for pass20 in range_constexpr(1) {
            a += WEIGHTS[pass20];
            if const_expr(pass20 == 1) {
                *log = *log * 31 + 7;
            }
        }
        first19 = first18;
    }
    first19
}

fn f42(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    a += if b <= a { (b * 3) } else { return (b + 3) };
    let mut array1 = [a, (a + 9), a];
    let or2 = if array1[0] != array1[1] { array1[1] } else { return array1[0] };
    'each4: for i3 in range(2, (array1[0] + 3) & 3) {
        let mut pair5 = Pair { first: array1[0], second: [(array1[0] * 3), (((array1[0] * 3) * array1[1]) ^ array1[0])] };
        let mut array6 = [array1[1], i3, (or2 & (i3 ^ pair5.first))];
        if array6[0] <= i3 {
        }
    }
    'each8: for i7 in range(2, (if a > array1[0] { b } else { (or2 - array1[0]) }) & 3) {
        let mut tuple9 = ((if i7 < array1[0] { i7 } else { (or2 | array1[1]) }), ((if (or2 < array1[1] && or2 < (or2 * b)) { b } else { (or2 ^ i7) }), (or2 * 3)));
        break 'each8;
    }
    let mut b = array1[1];
    (a ^ a)
}

fn f43(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    *log = *log * 31 + b;
    let mut v1 = a;
    let mut count2 = (b & v1) & 3;
    let value4 = 'again3: loop {
        count2 -= 1;
        if count2 < 0 {
            break b;
        }
        let first5;
        {
            let first6;
            {
                let Some(some7) = some_if(true, (b + 9)) else {
                    *log += 5;
                    break 'again3 (a & (b * 3));
                };
                first6 = count2;
            }
            first5 = count2;
        }
    };
    let mut count8 = value4 & 3;
    let value10 = 'again9: loop {
        count8 -= 1;
        if count8 < 0 {
            break a;
        }
        'unrolled12: for pass11 in range_constexpr(2) {
            b += WEIGHTS[pass11];
            if const_expr(pass11 == 1) {
                *log = *log * 31 + 7;
                break 'again9 (value4 * 3);
            }
        }
    };
    let Some(some13) = some_if(false, (b + 6)) else {
        *log += 5;
        return (if (value10 == value4 || v1 >= (value10 * 3)) { (a ^ b) } else { a });
    };
    'each15: for i14 in range(0, ((value10 - (a * 3)) * b) & 3) {
        let mut count16 = value4 & 3;
        'during17: while count16 > 0 {
            count16 -= 1;
            if b <= (count16 + i14) {
                let mut i14 = (if !(value4 & 1 == 1) { a } else { b });
                let mut value4 = (if b > (v1 ^ v1) { (count16 * 3) } else { (i14 * 3) });
                continue;
            } else
             {
            }
        }
        continue;
    }
    let mut count18 = (value10 + 2) & 3;
    'again19: loop {
        count18 -= 1;
        if count18 < 0 {
            break;
        }
        if count18 != v1 {
            if some13 > value4 {
                let mut count21 = (value10 * 3) & 3;
                let value23 = 'again22: loop {
                    count21 -= 1;
                    if count21 < 0 {
                        break (if !(b & 1 == 0) { (value10 * 3) } else { v1 });
                    }
                    break 'again22 count21;
                };
                break;
            }
            break;
        } else
         {
        }
    }
    let Some(some24) = some_if(false, (b * 3)) else {
        *log += 5;
        return (b * 3);
    };
    some24
}

fn f44(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    *log = *log * 31 + ((b + 9) ^ b);
    let mut pair1 = Pair { first: a, second: [a, (a + 8)] };
    let mut count2 = pair1.first & 3;
    'during3: while count2 > 0 {
        count2 -= 1;
        let mut array4 = [b, (count2 * 3), pair1.first];
        'each6: for i5 in range(2, a & 3) {
            let first7;
            {
                let mut array8 = [(array4[0] * (a | (array4[0] * 3))), (pair1.second[1] * 3), pair1.first];
                first7 = (array4[1] * 3);
            }
        }
    }
    'unrolled10: for pass9 in range_constexpr(3) {
        pair1.second[0] += WEIGHTS[pass9];
        if const_expr(pass9 == 1) {
            *log = *log * 31 + 7;
            continue 'unrolled10;
        }
        (pair1.second[0], pair1.second[1]) = ((if (!(b & 1 == 0) || a >= a) { pair1.second[1] } else { pair1.second[1] }), pair1.second[0]);
        match false {
            true => {
            }
            false => {
                return ((b + 1) - (pair1.first + 0));
            }
        }
    }
    pair1.first
}

fn f45(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let or1 = if a <= (b - a) { a } else { return a };
    if !(a & 1 == 1) {
        'block2: {
            let first3;
            {
                a += (a * 3);
                first3 = b;
            }
        }
    } else
     {
    }
    let first4;
    if !(b & 1 == 0) {
        let call5 = f37(((b + b) | (a - or1)), (if or1 != b { (or1 * (b + 3)) } else { or1 }), log);
        let mut v6 = ((or1 + 6) & (call5 * 3));
        first4 = a;
    } else {
        first4 = (if (a < a && or1 != (a + (or1 + 7))) { or1 } else { (if or1 != (or1 * 3) { (b * 3) } else { (b + 0) }) });
    }
    'each8: for i7 in range(2, first4 & 3) {
        let mut pair9 = Pair { first: first4, second: [((a & first4) ^ (b + 7)), a] };
    }
    let mut tuple10 = (a, ((a | b), first4));
    let mut count11 = (if first4 > ((tuple10.1.0 * 3) + a) { first4 } else { or1 }) & 3;
    let value13 = 'again12: loop {
        count11 -= 1;
        if count11 < 0 {
            break first4;
        }
        let or14 = if (!(tuple10.0 & 1 == 1) && (tuple10.1.1 < (b * 3) || a > first4)) { (tuple10.0 * 3) } else { break 'again12 (if count11 < a { b } else { (tuple10.1.1 + tuple10.0) }) };
        let mut count15 = or14 & 3;
        'again16: loop {
            count15 -= 1;
            if count15 < 0 {
                break;
            }
            {
                let part18 = &mut b;
                (*part18) += if (!((*part18) & 1 == 1) && (count11 != tuple10.1.0 && (*part18) >= (a * 3))) { (tuple10.1.1 * 3) } else { return (tuple10.1.0 * a) };
                *part18 += or14;
            }
            continue 'again16;
        }
    };
    tuple10.1.0
}

fn f46(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    b ^= a;
    let or1 = if ((a > (b * 3) && b != b) && (a < b && a < (a * 3))) { (a + 4) } else { return (b ^ (b + 0)) };
    if (!(b & 1 == 1) || (a < (a * 3) || or1 != a)) {
        a = or1;
        let call2 = f2(b, (or1 & ((a * 3) & or1)), log);
    } else
     {
    }
    'each4: for i3 in range(0, a & 3) {
        a -= ((or1 * 3) ^ (a + (or1 * 3)));
        'unrolled6: for pass5 in range_constexpr(1) {
            b += WEIGHTS[pass5];
            if const_expr(pass5 == 1) {
                *log = *log * 31 + 7;
                continue 'each4;
            }
            return (a * 3);
        }
    }
    a = (a + 9);
    b
}

fn f47(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    if b > a {
        *log = *log * 31 + (a + 1);
        let mut tuple1 = (a, (a, b));
        match true {
            true => {
                if ((tuple1.1.0 <= (b ^ a) || tuple1.1.1 < b) && tuple1.0 >= tuple1.0) {
                }
            }
            false => {
            }
        }
    } else
     {
    }
    let mut count2 = ((a + 5) - b) & 3;
    let value4 = 'again3: loop {
        count2 -= 1;
        if count2 < 0 {
            break count2;
        }
        let mut v5 = count2;
        b = v5;
        let or6 = if a == (b * 3) { ((b + 0) ^ ((a * 3) * a)) } else { continue 'again3 };
    };
    b = value4;
    a = if !(value4 & 1 == 0) { b } else { return (a * 3) };
    let mut count7 = (a - value4) & 3;
    let value9 = 'again8: loop {
        count7 -= 1;
        if count7 < 0 {
            break a;
        }
        'unrolled11: for pass10 in range_constexpr(2) {
            b += WEIGHTS[pass10];
            if const_expr(pass10 == 1) {
                *log = *log * 31 + 7;
            }
            let first12;
            if a >= a {
                'each14: for i13 in range(1, count7 & 3) {
                    {
                        let part15 = &mut b;
                        *part15 += (a - value4);
                    }
                    continue 'unrolled11;
                }
                first12 = b;
            } else {
                first12 = (if count7 >= value4 { (count7 ^ value4) } else { value4 });
            }
        }
    };
    let mut count16 = (a ^ (a + value4)) & 3;
    'again17: loop {
        count16 -= 1;
        if count16 < 0 {
            break;
        }
        *log = *log * 31 + a;
    }
    let mut pair19 = Pair { first: value9, second: [(b * 3), ((value4 + 5) & (value4 * 3))] };
    (if (!(b & 1 == 1) && value9 < pair19.second[1]) { (a + 7) } else { (value4 | (a + 4)) })
}

fn f48(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let call1 = f17(a, ((b * 3) ^ a), log);
    'each3: for i2 in range(1, a & 3) {
        'each5: for i4 in range(1, b & 3) {
            continue;
        }
    }
    let mut count6 = (call1 * b) & 3;
    let value8 = 'again7: loop {
        count6 -= 1;
        if count6 < 0 {
            break call1;
        }
        if a < a {
            let mut array9 = [(count6 + 3), a, a];
            (b, a) = (count6, b);
        }
        'block10: {
            return (b | call1);
        }
    };
    a -= (call1 * 3);
    let mut v11 = b;
    let first12;
    {
        b ^= value8;
        if a >= call1 {
            return a;
        } else
         {
        }
        first12 = (a * 3);
    }
    let first13;
    {
        'each15: for i14 in range(1, (call1 + 0) & 3) {
        }
        first13 = (v11 + 8);
    }
    let mut first12 = v11;
    let mut count16 = (call1 + 3) & 3;
    let value18 = 'again17: loop {
        count16 -= 1;
        if count16 < 0 {
            break (call1 + 9);
        }
        let mut first19;
        if value8 >= count16 {
            if !(count16 & 1 == 1) {
                first12 += if value8 > b { ((a * 3) ^ ((call1 | b) + value8)) } else { continue 'again17 };
                'each21: for i20 in range(2, first12 & 3) {
                }
                return v11;
            }
            first19 = ((b - (call1 + count16)) ^ first12);
        } else {
            first19 = (if !(first12 & 1 == 1) { (v11 + 4) } else { b });
        }
        break 'again17 first19;
    };
    (if (a > call1 && value8 != first12) { ((value8 * 3) + (a | first13)) } else { (first13 * first12) })
}

fn f49(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'each2: for i1 in range(1, a & 3) {
        if !(b & 1 == 1) {
            let mut tuple3 = (a, ((a * 3), (i1 * 3)));
            (tuple3.1.0, b) = (tuple3.1.1, tuple3.1.0);
            {
                let part4 = &mut tuple3.1.1;
                *part4 += (if a >= a { (*part4) } else { (b - (b + 5)) });
            }
        }
    }
    let value6 = 'block5: {
        let first7;
        {
            if !(a & 1 == 1) {
                break 'block5 (a * 3);
            }
            first7 = a;
        }
        a
    };
    let mut count8 = b & 3;
    'again9: loop {
        count8 -= 1;
        if count8 < 0 {
            break;
        }
        *log = *log * 31 + (value6 * 3);
        let first11;
        {
            let first12;
            {
                'each14: for i13 in range(2, ((a - a) + a) & 3) {
                }
                first12 = (value6 + 9);
            }
            first11 = count8;
        }
    }
    'unrolled16: for pass15 in range_constexpr(1) {
        a += WEIGHTS[pass15];
        if const_expr(pass15 == 1) {
            *log = *log * 31 + 7;
            continue;
        }
        let mut first17;
        if value6 <= (a * b) {
            'unrolled19: for pass18 in range_constexpr(2) {
                a += WEIGHTS[pass18];
                let mut count20 = a & 3;
                'during21: while count20 > 0 && a >= a {
                    count20 -= 1;
                }
            }
            first17 = value6;
        } else {
            first17 = value6;
        }
    }
    'unrolled23: for pass22 in range_constexpr(2) {
        b += WEIGHTS[pass22];
        let call24 = f35((value6 ^ b), value6, log);
        a ^= (a + 0);
    }
    {
        let part25 = &mut b;
        'unrolled27: for pass26 in range_constexpr(2) {
            a += WEIGHTS[pass26];
            if const_expr(pass26 == 1) {
                *log = *log * 31 + 7;
                continue 'unrolled27;
            }
            if a == (a * 3) {
                *log = *log * 31 + a;
            } else
             {
            }
        }
        *part25 += (value6 + 6);
    }
    b
}

fn f50(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let call1 = f34((b * 3), ((a - (b * 3)) | (a * 3)), log);
    *log = *log * 31 + b;
    let mut tuple2 = (a, ((if a < call1 { call1 } else { (call1 * a) }), (b | ((call1 * 3) + call1))));
    'block3: {
        let first4;
        {
            'unrolled6: for pass5 in range_constexpr(1) {
                b += WEIGHTS[pass5];
                if const_expr(pass5 == 1) {
                    *log = *log * 31 + 7;
                    break 'unrolled6;
                }
                let mut tuple7 = ((tuple2.1.0 - b), ((tuple2.0 * 3), (a & a)));
                continue;
            }
            first4 = a;
        }
        return (if a == (a ^ tuple2.1.0) { (tuple2.1.1 + 4) } else { (b + 5) });
    }
    (tuple2.0 * 3)
}

fn f51(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'each2: for i1 in range(1, (a + 9) & 3) {
        let first3;
        {
            'unrolled5: for pass4 in range_constexpr(1) {
                b += WEIGHTS[pass4];
                if const_expr(pass4 == 1) {
                    *log = *log * 31 + 7;
                }
                continue 'unrolled5;
            }
            first3 = b;
        }
    }
    match false {
        true => {
            'unrolled7: for pass6 in range_constexpr(2) {
                a += WEIGHTS[pass6];
                {
                    let part8 = &mut b;
                    *part8 += (if (*part8) >= (a * 3) { a } else { ((*part8) + 9) });
                }
            }
        }
        false => {
        }
    }
    let mut count9 = (if b == (a + b) { ((a + 8) ^ (b * 3)) } else { (a * 3) }) & 3;
    let value11 = 'again10: loop {
        count9 -= 1;
        if count9 < 0 {
            break (a ^ a);
        }
        *log = *log * 31 + count9;
        break 'again10 (b * 3);
    };
    if !(a & 1 == 1) {
        let mut array12 = [(value11 & b), value11, (if a <= b { (value11 + 1) } else { (a | (a + 4)) })];
        let Some(some13) = some_if(true, (b - array12[0])) else {
            *log += 5;
            return ((array12[0] + 2) & value11);
        };
        return (if value11 >= value11 { value11 } else { array12[1] });
    } else
     {
    }
    let or14 = if ((b != b && b > b) || a < ((value11 + 8) ^ b)) { (a * 3) } else { return value11 };
    (value11 * 3)
}

fn f52(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'unrolled2: for pass1 in range_constexpr(3) {
        b += WEIGHTS[pass1];
        let mut count3 = b & 3;
        'during4: while count3 > 0 {
            count3 -= 1;
            continue;
        }
    }
    'each6: for i5 in range(2, (a + a) & 3) {
        let or7 = if ((!(a & 1 == 0) || i5 <= (a * 3)) || b > (b & a)) { (if b != b { (b * 3) } else { (b * b) }) } else { continue };
        match true {
            true => {
                'each9: for i8 in range(1, (if or7 > (or7 * 3) { or7 } else { or7 }) & 3) {
                    if !(i8 & 1 == 0) {
                    } else
                     {
                    }
                }
            }
            false => {
            }
        }
    }
    *log = *log * 31 + (a + 8);
    a += if !(b & 1 == 1) { (a * 3) } else { return (a - (b * 3)) };
    let call10 = f18((b * a), (b * 3), log);
    'unrolled12: for pass11 in range_constexpr(1) {
        b += WEIGHTS[pass11];
        if const_expr(pass11 == 1) {
            *log = *log * 31 + 7;
            break 'unrolled12;
        }
        let mut pair13 = Pair { first: call10, second: [(b * (b + 6)), (a * (call10 + a))] };
    }
    let first14;
    {
        let or15 = if b > ((a + 2) | a) { b } else { return (b * 3) };
        let Some(some16) = some_if(false, (call10 & or15)) else {
            *log += 5;
            return or15;
        };
        first14 = a;
    }
    (a, b) = ((if !(first14 & 1 == 0) { a } else { b }), a);
    (if b < (a + 7) { (if !(b & 1 == 0) { (a | call10) } else { (a + 2) }) } else { call10 })
}

fn f53(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    {
        let part1 = &mut b;
        *log = *log * 31 + ((*part1) + 2);
        *part1 += (*part1);
    }
    *log = *log * 31 + a;
    let mut a = (if b != b { (b * 3) } else { (if a >= (a + b) { b } else { b }) });
    'unrolled3: for pass2 in range_constexpr(2) {
        b += WEIGHTS[pass2];
        if const_expr(pass2 == 1) {
            *log = *log * 31 + 7;
            break 'unrolled3;
        }
        b += if (b < (b ^ (a + 5)) && (a < (b & b) && b != b)) { a } else { return (a * 3) };
        {
            let part4 = &mut a;
            'unrolled6: for pass5 in range_constexpr(3) {
                b += WEIGHTS[pass5];
            }
            *part4 += ((*part4) + 6);
        }
    }
    let Some(some7) = some_if(true, b) else {
        *log += 5;
        return ((a + 0) ^ (b * 3));
    };
    a = some7;
    'each9: for i8 in range(1, (if (some7 == some7 && a < b) { ((some7 + 0) | (b + 3)) } else { ((some7 * 3) ^ (some7 + 7)) }) & 3) {
        match true {
            true => {
                let mut v10 = (some7 ^ (if b < (some7 + 7) { ((a + 8) & a) } else { (some7 ^ (a * 3)) }));
                v10 = (((a * some7) + b) ^ (if !(some7 & 1 == 1) { i8 } else { (v10 * 3) }));
            }
            false => {
                let mut count11 = (if (a >= ((some7 * 3) - i8) && !(a & 1 == 0)) { a } else { a }) & 3;
                'during12: while count11 > 0 && i8 <= (b + a) {
                    count11 -= 1;
                    continue;
                }
            }
        }
    }
    b
}

fn f54(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'block1: {
        let mut count2 = a & 3;
        'during3: while count2 > 0 {
            count2 -= 1;
            {
                let part4 = &mut b;
                *part4 += ((*part4) * 3);
            }
        }
        return b;
    }
    let first5;
    {
        if b != a {
            'each7: for i6 in range(1, (if !(a & 1 == 1) { a } else { b }) & 3) {
                let Some(some8) = some_if(true, (if i6 < i6 { (if !(a & 1 == 0) { (b - i6) } else { (b - a) }) } else { (if i6 != a { (a | b) } else { (b + 7) }) })) else {
                    *log += 5;
                    return (if b != (i6 + 5) { i6 } else { i6 });
                };
            }
        }
        first5 = (b - (a + 1));
    }
    let mut v9 = (if first5 > a { a } else { (if a == (first5 + a) { first5 } else { first5 }) });
    {
        let part10 = &mut b;
        let call11 = f13(v9, (first5 + 6), log);
        *part10 += first5;
    }
    let first12;
    {
        if a != (b ^ (b + 8)) {
            let first13;
            if a != a {
                (a, v9) = (b, a);
                first13 = ((first5 ^ ((first5 + 7) ^ a)) + b);
            } else {
                first13 = (((v9 * 3) - b) ^ v9);
            }
        } else
         {
            return first5;
        }
        first12 = (v9 + 7);
    }
    let mut count14 = ((first5 * 3) & (first5 + 7)) & 3;
    'again15: loop {
        count14 -= 1;
        if count14 < 0 {
            break;
        }
        *log = *log * 31 + ((count14 | first5) | count14);
        match true {
            true => {
                'each18: for i17 in range(0, first12 & 3) {
                    let mut count19 = a & 3;
                    let value21 = 'again20: loop {
                        count19 -= 1;
                        if count19 < 0 {
                            break (count14 * 3);
                        }
                    };
                }
                continue 'again15;
            }
            false => {
            }
        }
    }
    *log = *log * 31 + first12;
    let mut array22 = [a, (first12 * 3), (first5 | (first12 * 3))];
    a
}

fn f55(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut count1 = a & 3;
    'again2: loop {
        count1 -= 1;
        if count1 < 0 {
            break;
        }
        'block4: {
            'each6: for i5 in range(0, (count1 * 3) & 3) {
                'each8: for i7 in range(0, b & 3) {
                }
            }
        }
    }
    *log = *log * 31 + (b + (if (a != a && !(b & 1 == 1)) { (a + 6) } else { a }));
    *log = *log * 31 + a;
    let mut v9 = b;
    'each11: for i10 in range(2, (if b <= (a * 3) { b } else { (v9 | v9) }) & 3) {
        let mut v12 = (v9 * 3);
        'each14: for i13 in range(0, v9 & 3) {
        }
    }
    b = if v9 != a { v9 } else { return b };
    let first15;
    {
        let mut count16 = (if b >= ((v9 * 3) * v9) { (v9 - v9) } else { ((b + 9) | b) }) & 3;
        let value18 = 'again17: loop {
            count16 -= 1;
            if count16 < 0 {
                break a;
            }
            'block19: {
                let mut v20 = count16;
            }
        };
        first15 = (v9 * 3);
    }
    (first15 + 3)
}

fn f56(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'unrolled2: for pass1 in range_constexpr(2) {
        a += WEIGHTS[pass1];
        if const_expr(pass1 == 1) {
            *log = *log * 31 + 7;
            continue 'unrolled2;
        }
        'each4: for i3 in range(1, (a * 3) & 3) {
            *log = *log * 31 + b;
            break 'each4;
        }
        continue 'unrolled2;
    }
    if (!(b & 1 == 1) && !(a & 1 == 0)) {
        *log = *log * 31 + b;
        let value6 = 'block5: {
            let Some(some7) = some_if(true, (a & (b & b))) else {
                *log += 5;
                return (if b > ((a * 3) ^ (a * 3)) { a } else { (a * 3) });
            };
            b
        };
    } else
     {
    }
    let mut count8 = (b ^ b) & 3;
    'during9: while count8 > 0 && (!(b & 1 == 0) && a > (b - b)) {
        count8 -= 1;
        a = count8;
    }
    'unrolled11: for pass10 in range_constexpr(1) {
        b += WEIGHTS[pass10];
        if const_expr(pass10 == 1) {
            *log = *log * 31 + 7;
            break;
        }
        let mut a = a;
        let mut count12 = (b + 6) & 3;
        let value14 = 'again13: loop {
            count12 -= 1;
            if count12 < 0 {
                break b;
            }
            let first15;
            {
                b -= count12;
                first15 = a;
            }
            break 'again13 b;
        };
    }
    'each17: for i16 in range(1, ((b * 3) ^ b) & 3) {
        let mut count18 = b & 3;
        'again19: loop {
            count18 -= 1;
            if count18 < 0 {
                break;
            }
            if (a < a && (i16 < ((i16 * 3) & count18) || !(a & 1 == 0))) {
                let or21 = if count18 != (b * (count18 * 3)) { a } else { break };
            } else
             {
            }
            continue;
        }
    }
    let Some(some22) = some_if(true, (if a >= b { b } else { (a + 9) })) else {
        *log += 5;
        return b;
    };
    'each24: for i23 in range(2, (if some22 == a { b } else { some22 }) & 3) {
        (a, b) = (b, a);
        {
            let part25 = &mut a;
            if (*part25) <= (i23 & (*part25)) {
                (*part25) -= (b + 1);
            }
            *part25 += (b + 5);
        }
    }
    if !(a & 1 == 0) {
        let call26 = f1((if !(some22 & 1 == 0) { some22 } else { ((some22 * 3) + (some22 + 2)) }), a, log);
    }
    (a, b) = (((b + 5) & ((some22 + b) ^ b)), a);
    (some22 * 3)
}

fn f57(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'unrolled2: for pass1 in range_constexpr(3) {
        a += WEIGHTS[pass1];
        if const_expr(pass1 == 1) {
            *log = *log * 31 + 7;
        }
        *log = *log * 31 + a;
    }
    let value4 = 'block3: {
        {
            let part5 = &mut a;
            if !((*part5) & 1 == 1) {
                'each7: for i6 in range(2, (((*part5) * 3) - (*part5)) & 3) {
                    let or8 = if ((*part5) > i6 || i6 != i6) { b } else { break };
                }
                return ((*part5) * 3);
            } else
             {
            }
            *part5 += b;
        }
        a
    };
    let mut count9 = a & 3;
    'again10: loop {
        count9 -= 1;
        if count9 < 0 {
            break;
        }
        'each13: for i12 in range(0, (a ^ value4) & 3) {
        }
        continue;
    }
    let mut array14 = [value4, value4, a];
    'each16: for i15 in range(0, array14[2] & 3) {
        let mut count17 = ((b - b) ^ array14[0]) & 3;
        'during18: while count17 > 0 && (array14[1] < (b & array14[0]) || b >= (array14[0] + a)) {
            count17 -= 1;
            'block19: {
            }
        }
    }
    let mut count20 = ((array14[1] * 3) ^ array14[0]) & 3;
    let value22 = 'again21: loop {
        count20 -= 1;
        if count20 < 0 {
            break (array14[0] & a);
        }
        match true {
            true => {
                'each24: for i23 in range(0, (if a <= count20 { (array14[2] * array14[0]) } else { (array14[1] * 3) }) & 3) {
                }
            }
            false => {
                return array14[2];
            }
        }
    };
    (array14[2] + 2)
}

fn f58(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut a = b;
    {
        let part1 = &mut a;
        let call2 = f39((((*part1) - (*part1)) & b), b, log);
        let mut array3 = [(b * 3), ((*part1) - (call2 * b)), call2];
        *part1 += (b * 3);
    }
    let mut first4;
    if a < (b * 3) {
        let mut array5 = [(b * 3), (if (a != b && !(b & 1 == 1)) { a } else { b }), (if b >= ((b * 3) * a) { (b + 9) } else { b })];
        'each7: for i6 in range(1, ((array5[0] * 3) & array5[0]) & 3) {
            {
                let part8 = &mut b;
                *log = *log * 31 + (array5[0] + 4);
                *part8 += ((array5[0] + 1) + (array5[0] & a));
            }
            return (if (a > i6 || array5[1] >= i6) { array5[1] } else { (array5[2] + array5[0]) });
        }
        first4 = a;
    } else {
        first4 = (a * (b + 9));
    }
    (b, a) = (first4, b);
    'each10: for i9 in range(0, first4 & 3) {
        let mut v11 = i9;
        let mut tuple12 = (v11, ((a ^ (a ^ (v11 * 3))), (a ^ (first4 + 2))));
        let mut first4 = ((first4 + 9) & (v11 + 9));
    }
    let Some(some13) = some_if(true, (a | first4)) else {
        *log += 5;
        return (if a > a { (a - b) } else { a });
    };
    let Some(some14) = some_if(true, a) else {
        *log += 5;
        return (some13 ^ (first4 * 3));
    };
    let first15;
    {
        match false {
            true => {
                'each17: for i16 in range(0, (a + 1) & 3) {
                    let mut pair18 = Pair { first: b, second: [((a + 3) ^ (i16 + 3)), ((a * 3) ^ some14)] };
                }
            }
            false => {
            }
        }
        first15 = (some13 * 3);
    }
    let first19;
    if first4 < b {
        'unrolled21: for pass20 in range_constexpr(1) {
            b += WEIGHTS[pass20];
            if const_expr(pass20 == 1) {
                *log = *log * 31 + 7;
                return (a + b);
            }
            let value23 = 'block22: {
                'each25: for i24 in range(2, (first15 * 3) & 3) {
                }
                first15
            };
        }
        first19 = some13;
    } else {
        first19 = a;
    }
    ((first19 * some14) * first4)
}

fn f59(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut count1 = ((b * 3) | ((b + 3) | (a * 3))) & 3;
    'again2: loop {
        count1 -= 1;
        if count1 < 0 {
            break;
        }
        let mut count4 = (if count1 == b { ((a + 0) ^ b) } else { count1 }) & 3;
        let value6 = 'again5: loop {
            count4 -= 1;
            if count4 < 0 {
                break (if a == (count1 * 3) { count4 } else { (count1 + 7) });
            }
            let Some(some7) = some_if(false, count1) else {
                *log += 5;
                continue 'again2;
            };
            return count1;
        };
    }
    let call8 = f45(a, a, log);
    'block9: {
        if call8 < a {
            let mut count10 = (if b >= a { (b - a) } else { (a * 3) }) & 3;
            'during11: while count10 > 0 {
                count10 -= 1;
                'block12: {
                    'each14: for i13 in range(2, (count10 ^ (count10 + 7)) & 3) {
                        continue;
                    }
                }
                break 'during11;
            }
        }
    }
    let first15;
    {
        let mut count16 = call8 & 3;
        let value18 = 'again17: loop {
            count16 -= 1;
            if count16 < 0 {
                break (call8 + 8);
            }
            let Some(some19) = some_if(false, b) else {
                *log += 5;
                break 'again17 count16;
            };
        };
        'each21: for i20 in range(1, value18 & 3) {
            continue;
        }
        first15 = (call8 * (b ^ a));
    }
    {
        let part22 = &mut b;
        let mut v23 = (((*part22) + 3) ^ a);
        *part22 += first15;
    }
    (b * 3)
}

}
