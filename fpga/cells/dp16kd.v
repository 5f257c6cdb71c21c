// Block RAM of the ECP5 (memory usage guide, FPGA-TN-02204): 18 432 bits, two ports on one clock.
//
// Modelled: ports of 1, 2, 4, 9 and 18 bits with byte enables (at 18), on which a write leaves the
// output (NORMAL), shows the new word (WRITETHROUGH; at 18 bits its written bytes) or the old one
// (READBEFOREWRITE); port A of 36 bits that only writes, with byte enables, and port B of 36 bits
// that only reads; clock enable, chip select, initial contents, synchronous and asynchronous reset
// of the outputs, inverted clocks. The global set/reset changes nothing here: it acts at the end of
// configuration, where the initial values hold anyway. All else ends in $fatal. Parameters and pins
// that have no meaning here are not declared: a netlist that needs them does not compile.
//
// Bits that one port reads while the other one writes them are undefined in the device. Here they
// come out inverted, so that nobody gets away with using them.
module DP16KD (
    input DIA0, DIA1, DIA2, DIA3, DIA4, DIA5, DIA6, DIA7, DIA8, DIA9, DIA10, DIA11, DIA12, DIA13,
    DIA14, DIA15, DIA16, DIA17,
    input ADA0, ADA1, ADA2, ADA3, ADA4, ADA5, ADA6, ADA7, ADA8, ADA9, ADA10, ADA11, ADA12, ADA13,
    input CEA, OCEA, CLKA, WEA, RSTA, CSA0, CSA1, CSA2,
    input DIB0, DIB1, DIB2, DIB3, DIB4, DIB5, DIB6, DIB7, DIB8, DIB9, DIB10, DIB11, DIB12, DIB13,
    DIB14, DIB15, DIB16, DIB17,
    input ADB0, ADB1, ADB2, ADB3, ADB4, ADB5, ADB6, ADB7, ADB8, ADB9, ADB10, ADB11, ADB12, ADB13,
    input CEB, OCEB, CLKB, WEB, RSTB, CSB0, CSB1, CSB2,
    output DOA0, DOA1, DOA2, DOA3, DOA4, DOA5, DOA6, DOA7, DOA8, DOA9, DOA10, DOA11, DOA12, DOA13,
    DOA14, DOA15, DOA16, DOA17,
    output DOB0, DOB1, DOB2, DOB3, DOB4, DOB5, DOB6, DOB7, DOB8, DOB9, DOB10, DOB11, DOB12, DOB13,
    DOB14, DOB15, DOB16, DOB17
);
  parameter DATA_WIDTH_A = 18;
  parameter DATA_WIDTH_B = 18;
  parameter REGMODE_A = "NOREG";
  parameter REGMODE_B = "NOREG";
  parameter RESETMODE = "SYNC";
  parameter ASYNC_RESET_RELEASE = "SYNC";
  parameter CSDECODE_A = "0b000";
  parameter CSDECODE_B = "0b000";
  parameter WRITEMODE_A = "NORMAL";
  parameter WRITEMODE_B = "NORMAL";
  parameter CLKAMUX = "CLKA";
  parameter CLKBMUX = "CLKB";
  parameter GSR = "ENABLED";
  parameter [319:0] INITVAL_00 = 0, INITVAL_01 = 0, INITVAL_02 = 0, INITVAL_03 = 0;
  parameter [319:0] INITVAL_04 = 0, INITVAL_05 = 0, INITVAL_06 = 0, INITVAL_07 = 0;
  parameter [319:0] INITVAL_08 = 0, INITVAL_09 = 0, INITVAL_0A = 0, INITVAL_0B = 0;
  parameter [319:0] INITVAL_0C = 0, INITVAL_0D = 0, INITVAL_0E = 0, INITVAL_0F = 0;
  parameter [319:0] INITVAL_10 = 0, INITVAL_11 = 0, INITVAL_12 = 0, INITVAL_13 = 0;
  parameter [319:0] INITVAL_14 = 0, INITVAL_15 = 0, INITVAL_16 = 0, INITVAL_17 = 0;
  parameter [319:0] INITVAL_18 = 0, INITVAL_19 = 0, INITVAL_1A = 0, INITVAL_1B = 0;
  parameter [319:0] INITVAL_1C = 0, INITVAL_1D = 0, INITVAL_1E = 0, INITVAL_1F = 0;
  parameter [319:0] INITVAL_20 = 0, INITVAL_21 = 0, INITVAL_22 = 0, INITVAL_23 = 0;
  parameter [319:0] INITVAL_24 = 0, INITVAL_25 = 0, INITVAL_26 = 0, INITVAL_27 = 0;
  parameter [319:0] INITVAL_28 = 0, INITVAL_29 = 0, INITVAL_2A = 0, INITVAL_2B = 0;
  parameter [319:0] INITVAL_2C = 0, INITVAL_2D = 0, INITVAL_2E = 0, INITVAL_2F = 0;
  parameter [319:0] INITVAL_30 = 0, INITVAL_31 = 0, INITVAL_32 = 0, INITVAL_33 = 0;
  parameter [319:0] INITVAL_34 = 0, INITVAL_35 = 0, INITVAL_36 = 0, INITVAL_37 = 0;
  parameter [319:0] INITVAL_38 = 0, INITVAL_39 = 0, INITVAL_3A = 0, INITVAL_3B = 0;
  parameter [319:0] INITVAL_3C = 0, INITVAL_3D = 0, INITVAL_3E = 0, INITVAL_3F = 0;

  // ---- modes ------------------------------------------------------------------------------------

  generate
    if (DATA_WIDTH_A != 1 && DATA_WIDTH_A != 2 && DATA_WIDTH_A != 4 && DATA_WIDTH_A != 9 &&
        DATA_WIDTH_A != 18 && DATA_WIDTH_A != 36)
      $fatal(1, "DP16KD: DATA_WIDTH_A = %0d is not modelled", DATA_WIDTH_A);
    if (DATA_WIDTH_B != 1 && DATA_WIDTH_B != 2 && DATA_WIDTH_B != 4 && DATA_WIDTH_B != 9 &&
        DATA_WIDTH_B != 18 && DATA_WIDTH_B != 36)
      $fatal(1, "DP16KD: DATA_WIDTH_B = %0d is not modelled", DATA_WIDTH_B);
    if (DATA_WIDTH_B == 36 && DATA_WIDTH_A != 36)
      $fatal(1, "DP16KD: DATA_WIDTH_B = 36 with DATA_WIDTH_A = %0d is not modelled", DATA_WIDTH_A);
    if (REGMODE_A != "NOREG")
      $fatal(1, "DP16KD: REGMODE_A = %s is not modelled", REGMODE_A);
    if (WRITEMODE_A != "NORMAL" && WRITEMODE_A != "WRITETHROUGH" &&
        WRITEMODE_A != "READBEFOREWRITE")
      $fatal(1, "DP16KD: WRITEMODE_A = %s is not modelled", WRITEMODE_A);
    if (CLKAMUX != "CLKA" && CLKAMUX != "INV")
      $fatal(1, "DP16KD: CLKAMUX = %s is not modelled", CLKAMUX);
    if (REGMODE_B != "NOREG")
      $fatal(1, "DP16KD: REGMODE_B = %s is not modelled", REGMODE_B);
    if (WRITEMODE_B != "NORMAL" && WRITEMODE_B != "WRITETHROUGH" &&
        WRITEMODE_B != "READBEFOREWRITE")
      $fatal(1, "DP16KD: WRITEMODE_B = %s is not modelled", WRITEMODE_B);
    if (CLKBMUX != "CLKB" && CLKBMUX != "INV")
      $fatal(1, "DP16KD: CLKBMUX = %s is not modelled", CLKBMUX);
    if (RESETMODE != "SYNC" && RESETMODE != "ASYNC")
      $fatal(1, "DP16KD: RESETMODE = %s is not modelled", RESETMODE);
    if (RESETMODE == "ASYNC" && ASYNC_RESET_RELEASE != "ASYNC")
      $fatal(1, "DP16KD: ASYNC_RESET_RELEASE = %s with RESETMODE = ASYNC is not modelled",
             ASYNC_RESET_RELEASE);
  endgenerate

  // ---- contents ---------------------------------------------------------------------------------

  // Words of four bytes of nine bits. Address bits 13:5 name the word, 4:3 the byte, 2:0 the bit;
  // ports of up to four bits do not reach the ninth ones.
  reg [35:0] mem[0:511];
  localparam [64*320-1:0] INITIAL = {
    INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C,
    INITVAL_3B, INITVAL_3A, INITVAL_39, INITVAL_38,
    INITVAL_37, INITVAL_36, INITVAL_35, INITVAL_34,
    INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30,
    INITVAL_2F, INITVAL_2E, INITVAL_2D, INITVAL_2C,
    INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28,
    INITVAL_27, INITVAL_26, INITVAL_25, INITVAL_24,
    INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20,
    INITVAL_1F, INITVAL_1E, INITVAL_1D, INITVAL_1C,
    INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18,
    INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14,
    INITVAL_13, INITVAL_12, INITVAL_11, INITVAL_10,
    INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C,
    INITVAL_0B, INITVAL_0A, INITVAL_09, INITVAL_08,
    INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04,
    INITVAL_03, INITVAL_02, INITVAL_01, INITVAL_00
  };
  integer i;
  // Each parameter holds 16 times 18 bits, in 20 bits each.
  initial
    for (i = 0; i < 512; i = i + 1)
      mem[i] = {INITIAL[40*i+20 +: 18], INITIAL[40*i +: 18]};

  // ---- access of port A -------------------------------------------------------------------------

  wire [17:0] di_a = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7,
      DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
  wire [13:0] ad_a = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2,
      ADA1, ADA0};
  wire clk_a = (CLKAMUX == "INV") ? ~CLKA : CLKA;
  // CSDECODE is text such as 0b101: the digits are the lowest bits of its characters.
  wire access_a = CEA && !(RESETMODE == "SYNC" && RSTA) &&
      {CSA2, CSA1, CSA0} == {CSDECODE_A[16], CSDECODE_A[8], CSDECODE_A[0]};
  wire write_a = access_a && WEA;
  wire [8:0] word_a = ad_a[13:5];
  wire [5:0] offset_a =
      DATA_WIDTH_A == 36 ? 6'd0 :
      DATA_WIDTH_A == 18 ? (ad_a[4] ? 6'd18 : 6'd0) :
      DATA_WIDTH_A == 9 ? 6'd9 * ad_a[4:3] :
      6'd9 * ad_a[4:3] + ({3'd0, ad_a[2:0]} & ~(DATA_WIDTH_A - 6'd1));
  wire [3:0] byte_enable_a = DATA_WIDTH_A == 36 ? ad_a[3:0] : {2'b00, ad_a[1:0]};
  wire [35:0] byte_mask_a = {
      {9{byte_enable_a[3]}}, {9{byte_enable_a[2]}},
      {9{byte_enable_a[1]}}, {9{byte_enable_a[0]}}};
  // Which bits of the word a write takes, and what it puts there.
  wire [35:0] mask_a =
      (DATA_WIDTH_A >= 18 ? byte_mask_a : (36'd1 << DATA_WIDTH_A) - 36'd1) << offset_a;
  wire [35:0] data_a =
      DATA_WIDTH_A == 36 ? {di_b, di_a} : {18'd0, di_a} << offset_a;

  // ---- access of port B -------------------------------------------------------------------------

  wire [17:0] di_b = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7,
      DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0};
  wire [13:0] ad_b = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2,
      ADB1, ADB0};
  wire clk_b = (CLKBMUX == "INV") ? ~CLKB : CLKB;
  // CSDECODE is text such as 0b101: the digits are the lowest bits of its characters.
  wire access_b = CEB && !(RESETMODE == "SYNC" && RSTB) &&
      {CSB2, CSB1, CSB0} == {CSDECODE_B[16], CSDECODE_B[8], CSDECODE_B[0]};
  wire write_b = access_b && WEB;
  wire [8:0] word_b = ad_b[13:5];
  wire [5:0] offset_b =
      DATA_WIDTH_B == 36 ? 6'd0 :
      DATA_WIDTH_B == 18 ? (ad_b[4] ? 6'd18 : 6'd0) :
      DATA_WIDTH_B == 9 ? 6'd9 * ad_b[4:3] :
      6'd9 * ad_b[4:3] + ({3'd0, ad_b[2:0]} & ~(DATA_WIDTH_B - 6'd1));
  wire [3:0] byte_enable_b = DATA_WIDTH_B == 36 ? ad_b[3:0] : {2'b00, ad_b[1:0]};
  wire [35:0] byte_mask_b = {
      {9{byte_enable_b[3]}}, {9{byte_enable_b[2]}},
      {9{byte_enable_b[1]}}, {9{byte_enable_b[0]}}};
  // Which bits of the word a write takes, and what it puts there.
  wire [35:0] mask_b =
      (DATA_WIDTH_B >= 18 ? byte_mask_b : (36'd1 << DATA_WIDTH_B) - 36'd1) << offset_b;
  wire [35:0] data_b =
      DATA_WIDTH_B == 36 ? {di_b, di_a} : {18'd0, di_b} << offset_b;

  always @(posedge clk_b)
    if (write_b && DATA_WIDTH_B == 36)
      $fatal(1, "DP16KD: a write on port B of 36 bits is not modelled");

  // ---- one clock, no two writers ----------------------------------------------------------------

  // Counting edges tells whether both ports have the same clock, or one of them none.
  reg edge_a = 0, edge_b = 0, ticks_a = 0, ticks_b = 0;
  always @(posedge clk_a) begin
    edge_a <= ~edge_a;
    ticks_a <= 1;
    if (ticks_a && ticks_b && edge_a != edge_b)
      $fatal(1, "DP16KD: ports on different clocks are not modelled");
    if (write_a && write_b && word_a == word_b && (mask_a & mask_b) != 0)
      $fatal(1, "DP16KD: both ports write the same bits at the same time");
  end
  always @(posedge clk_b) begin
    edge_b <= ~edge_b;
    ticks_b <= 1;
    if (ticks_a && ticks_b && edge_a != edge_b)
      $fatal(1, "DP16KD: ports on different clocks are not modelled");
  end

  // ---- port A -----------------------------------------------------------------------------------

  genvar byte_a;
  generate
    if (DATA_WIDTH_A >= 18) begin : bytes_a
      for (byte_a = 0; byte_a < 4; byte_a = byte_a + 1) begin : lane
        always @(posedge clk_a)
          if (write_a && mask_a[9*byte_a])
            mem[word_a][9*byte_a +: 9] <= data_a[9*byte_a +: 9];
      end
    end else begin : bits_a
      always @(posedge clk_a)
        if (write_a)
          mem[word_a][offset_a +: DATA_WIDTH_A] <= di_a[DATA_WIDTH_A-1:0];
    end
  endgenerate
  // What a read shows was there before this edge.
  wire [35:0] read_a =
      (mem[word_a] ^ ((write_b && word_b == word_a) ? mask_b : 36'd0)) >> offset_a;
  wire [35:0] taken_a = mask_a >> offset_a;
  localparam [35:0] WIDTH_A = (37'd1 << DATA_WIDTH_A) - 37'd1;
  reg [35:0] out_a = 0;
  wire [35:0] next_a =
      (!WEA || WRITEMODE_A == "READBEFOREWRITE") ? read_a & WIDTH_A :
      WRITEMODE_A == "WRITETHROUGH" ? out_a & ~taken_a | {18'd0, di_a} & taken_a :
      out_a;
  generate
    if (RESETMODE == "ASYNC") begin : async_a
      always @(posedge clk_a or posedge RSTA)
        if (RSTA) out_a <= 0;
        else if (access_a) out_a <= next_a;
    end else begin : sync_a
      always @(posedge clk_a)
        if (RSTA) out_a <= 0;
        else if (access_a) out_a <= next_a;
    end
  endgenerate

  // ---- port B -----------------------------------------------------------------------------------

  genvar byte_b;
  generate
    if (DATA_WIDTH_B >= 18) begin : bytes_b
      for (byte_b = 0; byte_b < 4; byte_b = byte_b + 1) begin : lane
        always @(posedge clk_b)
          if (write_b && mask_b[9*byte_b])
            mem[word_b][9*byte_b +: 9] <= data_b[9*byte_b +: 9];
      end
    end else begin : bits_b
      always @(posedge clk_b)
        if (write_b)
          mem[word_b][offset_b +: DATA_WIDTH_B] <= di_b[DATA_WIDTH_B-1:0];
    end
  endgenerate
  // What a read shows was there before this edge.
  wire [35:0] read_b =
      (mem[word_b] ^ ((write_a && word_a == word_b) ? mask_a : 36'd0)) >> offset_b;
  wire [35:0] taken_b = mask_b >> offset_b;
  localparam [35:0] WIDTH_B = (37'd1 << DATA_WIDTH_B) - 37'd1;
  reg [35:0] out_b = 0;
  wire [35:0] next_b =
      (!WEB || WRITEMODE_B == "READBEFOREWRITE") ? read_b & WIDTH_B :
      WRITEMODE_B == "WRITETHROUGH" ? out_b & ~taken_b | {18'd0, di_b} & taken_b :
      out_b;
  generate
    if (RESETMODE == "ASYNC") begin : async_b
      always @(posedge clk_b or posedge RSTB)
        if (RSTB) out_b <= 0;
        else if (access_b) out_b <= next_b;
    end else begin : sync_b
      always @(posedge clk_b)
        if (RSTB) out_b <= 0;
        else if (access_b) out_b <= next_b;
    end
  endgenerate

  // ---- outputs ----------------------------------------------------------------------------------

  // A port of 36 bits uses the data pins of both; port A of 36 bits reads nothing.
  wire [17:0] do_a =
      DATA_WIDTH_B == 36 ? out_b[17:0] : DATA_WIDTH_A == 36 ? 18'bx : out_a[17:0];
  wire [17:0] do_b = DATA_WIDTH_B == 36 ? out_b[35:18] : out_b[17:0];
  assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5,
          DOA4, DOA3, DOA2, DOA1, DOA0} = do_a;
  assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5,
          DOB4, DOB3, DOB2, DOB1, DOB0} = do_b;
endmodule
